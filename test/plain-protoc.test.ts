import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** The options in descriptor.proto of protoc 3.21, which Debian 12 and Ubuntu 24.04 have, and json_name. */
const KNOWN = [
  ...['java_package', 'java_outer_classname', 'java_multiple_files', 'java_generate_equals_and_hash'],
  ...['java_string_check_utf8', 'optimize_for', 'go_package', 'cc_generic_services', 'java_generic_services'],
  ...['py_generic_services', 'php_generic_services', 'deprecated', 'cc_enable_arenas', 'objc_class_prefix'],
  ...['csharp_namespace', 'swift_prefix', 'php_class_prefix', 'php_namespace', 'php_metadata_namespace'],
  ...['ruby_package', 'message_set_wire_format', 'no_standard_descriptor_accessor', 'map_entry', 'ctype'],
  ...['packed', 'jstype', 'lazy', 'unverified_lazy', 'weak', 'default', 'json_name', 'allow_alias'],
  'idempotency_level',
];

it('protoc 3.21 can compile the contract: its files have no syntax and no option that came later', () => {
  const paths = globSync('{proto,third_party}/**/*.proto', { cwd: ROOT });
  expect(paths.length).toBeGreaterThan(20);
  const unknown = paths.flatMap((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8')
      .replaceAll(/\/\/.*$|\/\*[\s\S]*?\*\//gm, '')
      .replaceAll(/"(?:[^"\\]|\\.)*"/g, (literal) => (/^"proto[23]"$/.test(literal) ? literal : '""'));
    const options = [...text.matchAll(/(?:\boption|[[,])\s*([a-z_]\w*)\s*=/g)].map(([, name = '']) => name);
    const syntax = /^\s*syntax = "proto[23]";/.test(text) ? [] : ['no syntax of proto2 or proto3'];
    return [...syntax, ...options.filter((name) => !KNOWN.includes(name))].map((one) => `${path}: ${one}`);
  });
  expect(unknown).toEqual([]);
});
