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
import type { CommandIo } from './command-line.ts';
import { credentialsHere, optionsHere } from './open-here.ts';
import { readInput } from './read-input.ts';

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
  const value = await readInput(stdin, 'the value of the secret', MAX_BYTES);
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

/** Maximum length of a secret. */
const MAX_BYTES = 64 * 1024;
