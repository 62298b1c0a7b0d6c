import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readArguments } from '#src/commands/command-line.ts';
import { CHECKOUT_DIR } from '#src/config.ts';
import { readServices, readSettingHelps } from '#tools/openapi/descriptors.ts';
import { readErrorAdvice } from '#tools/openapi/error-responses.ts';
import { readExamples } from '#tools/openapi/examples.ts';
import { openApiDocument } from '#tools/openapi/openapi-document.ts';
import { typescriptClient } from '#tools/openapi/typescript-client.ts';

const read = (path: string) => readFileSync(join(CHECKOUT_DIR, path), 'utf8');

const USAGE = `Usage: node tools/generate-openapi.ts [directory]

Writes gen/openapi.json, gen/setting-helps.json and the types of the TypeScript client, by default in the checkout.`;

function main(): void {
  const [directory = CHECKOUT_DIR] = readArguments(USAGE, { allowPositionals: true }).positionals;
  const document = openApiDocument({
    version: JSON.parse(read('package.json')).version,
    services: readServices(CHECKOUT_DIR),
    examples: readExamples(join(CHECKOUT_DIR, 'test')),
    errors: readErrorAdvice(read('docs/errors.md')),
  });
  write(join(directory, 'gen/openapi.json'), `${JSON.stringify(document, null, 2)}\n`);
  const helps = JSON.stringify(readSettingHelps(CHECKOUT_DIR), null, 2);
  write(join(directory, 'gen/setting-helps.json'), `${helps}\n`);
  write(join(directory, 'clients/typescript/src/operations.ts'), typescriptClient(document));
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

main();
