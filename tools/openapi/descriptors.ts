import { execFileSync } from 'node:child_process';
import {
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  type FileRegistry,
  fromBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { getComments } from '@bufbuild/protoplugin';
import { httpBindings } from '#src/api/http-rule.ts';

/** Package of the services that merchants and operators call. */
const PACKAGE = 'payments.v1';

/**
 * Reads the services of proto/ that REST serves, including the comments, which generated code lacks.
 *
 * @param directory the checkout.
 * @throws Error if buf cannot build proto/.
 */
export function readServices(directory: string): DescService[] {
  return [...readFiles(directory).files]
    .filter((file) => file.proto.package === PACKAGE)
    .flatMap((file) => file.services)
    .filter((service) => service.methods.some((method) => httpBindings(method).length > 0))
    .sort((one, other) => ORDER(one) - ORDER(other) || one.name.localeCompare(other.name));
}

/**
 * Reads the comments of the connectors' settings, which the form of a connection shows.
 *
 * @returns the comments by the names of messages and of their fields.
 * @throws Error if buf cannot build proto/.
 */
export function readSettingHelps(directory: string): Record<string, Record<string, string>> {
  const files = [...readFiles(directory).files].filter(({ name }) => name === SETTINGS);
  return Object.fromEntries(
    files
      .flatMap(({ messages }) => messages)
      .map(({ name, fields }) => [name, Object.fromEntries(fields.map((one) => [one.name, commentOf(one)]))]),
  );
}

/** The .proto of the connectors' settings, without the extension. */
const SETTINGS = 'payments/config/connector_settings';

function readFiles(directory: string): FileRegistry {
  const image = execFileSync('buf', ['build', 'proto', '-o', '-'], { cwd: directory, maxBuffer: 1 << 28 });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, image));
}

/** Payments come first, since readers start at the top. */
const ORDER = ({ name }: DescService) => (name === 'PaymentService' ? 0 : 1);

type Described = DescService | DescMethod | DescMessage | DescField | DescEnum | DescEnum['values'][number];

/** Returns the comment before a descriptor in its .proto as Markdown, with lines joined to paragraphs. */
export function commentOf(desc: Described): string {
  const paragraphs = (getComments(desc).leading ?? '').trim().split(/\s*\n\s*\n\s*/);
  return paragraphs.map((paragraph) => paragraph.replaceAll(/\s*\n\s*/g, ' ')).join('\n\n');
}

/** Splits a name in camel case into words: "RotateWebhookSecret" becomes "Rotate webhook secret". */
export function wordsOf(name: string): string {
  const words = name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ').toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
