import { create } from '@bufbuild/protobuf';
import { SetConnectionSecretRequestSchema } from '#gen/payments/v1/configuration_service_pb.js';
import { resolveSecrets } from '#src/catalogue/credentials.ts';
import { openConnection } from '#src/catalogue/open-connection.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { type SecretDeps, setConnectionSecret } from '#src/catalogue/set-secret.ts';
import type { Config } from '#src/config.ts';
import { invalidParameters, ServiceError } from '#src/service-error.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { installationKeys } from '#src/vault/key-file.ts';
import { validate } from '#src/wire/validate.ts';
import { actorOf } from './actor.ts';
import type { CommandStorage } from './command-database.ts';
import { type CommandIo, UsageError } from './command-line.ts';
import { credentialsHere, optionsHere } from './open-here.ts';

/** A secret to store, as on the command line. */
export type NamedSecret = {
  readonly connectionId: string;
  readonly name: string;
  /** Seconds for which the replaced value still verifies notifications; a day if undefined. */
  readonly keepPreviousS: number | undefined;
  /** Asks the provider first. */
  readonly test: boolean;
  readonly confirmSameAccount: boolean;
};

const checkRequest = validate(SetConnectionSecretRequestSchema);

/** Stores a secret of a connection, whose value comes from standard input. @returns the exit code. */
export async function storeSecretHere(
  config: Config,
  storage: CommandStorage,
  { stdin, stdout, stderr }: CommandIo,
  secret: NamedSecret,
): Promise<number> {
  const { keepPreviousS, ...named } = secret;
  const value = await readValue(stdin);
  const request = create(SetConnectionSecretRequestSchema, {
    ...named,
    value,
    ...(keepPreviousS !== undefined && { keepPreviousS }),
  });
  try {
    const faults = checkRequest(request);
    if (faults.length > 0) throw invalidParameters(faults);
    const { tested } = await setConnectionSecret(depsHere(config, storage), request, actorOf(config));
    stdout.write(
      `stored${tested ? ', and accepted by the provider' : ''}; every replica uses it within two seconds\n`,
    );
    return 0;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    stderr.write(`Not done (${error.reason}): ${error.message}\n`);
    return 1;
  }
}

function depsHere(config: Config, { database, dataDir }: CommandStorage): SecretDeps {
  const { catalogueFile, connectionHosts } = config;
  const { hashKey, vaultKeys } = installationKeys(config, dataDir);
  const options = optionsHere({ ...config, hashKey });
  return {
    ...{ database, connectionHosts, connectors: options.connectors, vault: cardVault(vaultKeys) },
    fromFile: catalogueFile === undefined ? undefined : () => readCatalogue(catalogueFile),
    readCredentials: credentialsHere(database, config, dataDir),
    openOne: (definition, credentials) =>
      openConnection(definition, resolveSecrets(definition, options.environment, credentials), options),
  };
}

const MAX_BYTES = 64 * 1024;

/** Reads all of standard input, without the line's end. */
async function readValue(stdin: CommandIo['stdin']): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stdin ?? []) {
    parts.push(Buffer.from(part));
    bytes += part.length;
    if (bytes > MAX_BYTES) throw new UsageError('The value on standard input is too long.');
  }
  const value = Buffer.concat(parts)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (value === '') throw new UsageError('The value of the secret is read from standard input.');
  return value;
}
