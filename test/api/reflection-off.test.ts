import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { expect, it } from 'vitest';
import { Health } from '#gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '#gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionV1Alpha } from '#gen/grpc/reflection/v1alpha/reflection_pb.js';
import { startTestServer } from '../support/server.ts';

it('with reflection turned off, reflection is unimplemented and health still works', async () => {
  const server = await startTestServer({ config: { reflection: false } });
  const transport = createGrpcTransport({ baseUrl: server.url });
  for (const service of [ServerReflection, ServerReflectionV1Alpha]) {
    const client = createClient(service as typeof ServerReflection, transport);
    const answers = Array.fromAsync(
      client.serverReflectionInfo(
        (async function* () {
          yield { messageRequest: { case: 'listServices', value: '' } } as const;
        })(),
      ),
    );
    const code = await answers.catch((error) => ConnectError.from(error).code);
    expect(code).toBe(Code.Unimplemented);
  }
  expect(await createClient(Health, transport).check({})).toMatchObject({ status: 1 });
  await server.close();
});
