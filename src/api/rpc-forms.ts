import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '#src/service-error.ts';
import { sendProblem } from './error-handler.ts';

/**
 * Refuses rpc calls whose method or media type belongs to no supported protocol. Connect refuses them too, but its
 * error does not list the accepted ones.
 */
export function refuseWrongForms(app: FastifyInstance, services: readonly DescService[]): void {
  const forms = new Map<string, ReturnType<typeof formOf>>(
    services.flatMap(({ typeName, methods }) =>
      methods.map((method) => [`/${typeName}/${method.name}`, formOf(method)] as const),
    ),
  );
  app.addHook('onRequest', (request, reply, done) => {
    const form = forms.get(request.routeOptions.url ?? '');
    if (!form) return done();
    if (!form.methods.includes(request.method)) {
      const allowed = form.methods.join(', ');
      const refusal = new ServiceError('METHOD_NOT_ALLOWED', `this rpc allows only ${allowed}`);
      return sendProblem(refusal, request, reply.header('allow', allowed));
    }
    if (request.method === 'POST' && !form.mediaType.test(request.headers['content-type'] ?? '')) {
      const refusal = new ServiceError(
        'UNSUPPORTED_MEDIA_TYPE',
        `the content-type must be ${form.mediaTypes}`,
      );
      return sendProblem(refusal, request, reply);
    }
    done();
  });
}

function formOf(method: DescMethod) {
  const isUnary = method.methodKind === 'unary';
  const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const connect = isUnary ? '' : 'connect\\+';
  return {
    methods: isUnary && isRead ? ['GET', 'POST'] : ['POST'],
    mediaType: new RegExp(
      `^application/(?:${connect}(?:json${CHARSET}|proto)|grpc(?:-web)?(?:\\+(?:json${CHARSET}|proto))?)$`,
      'i',
    ),
    mediaTypes: `application/${isUnary ? '' : 'connect+'}json, application/${isUnary ? '' : 'connect+'}proto, ${GRPC_TYPES}`,
  };
}

const CHARSET = '(?:; ?charset=utf-?8)?';
const GRPC_TYPES =
  'application/grpc, application/grpc+json, application/grpc-web or application/grpc-web+json (not grpc-web-text)';
