import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT_DIR } from '#src/config.ts';
import { readServices } from '#src/openapi/descriptors.ts';
import { readErrorAdvice } from '#src/openapi/error-responses.ts';
import { readExamples } from '#src/openapi/examples.ts';
import { openApiDocument } from '#src/openapi/openapi-document.ts';

const read = (path: string) => readFileSync(join(CHECKOUT_DIR, path), 'utf8');

/** Writes the OpenAPI document: `node src/commands/generate-openapi.ts [path]`, by default gen/openapi.json. */
function main(path = join(CHECKOUT_DIR, 'gen/openapi.json')): void {
  const document = openApiDocument({
    version: JSON.parse(read('package.json')).version,
    services: readServices(CHECKOUT_DIR),
    examples: readExamples(join(CHECKOUT_DIR, 'test')),
    errors: readErrorAdvice(read('docs/errors.md')),
  });
  writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`);
}

main(process.argv[2]);
