import { clearField, type DescField, type DescMessage, isFieldSet, type Message } from '@bufbuild/protobuf';
import type { FieldMask } from '@bufbuild/protobuf/wkt';
import { notAllowed } from '#src/service-error.ts';

/** A request that changes an object's fields. */
type UpdateRequest = Message & { readonly updateMask?: FieldMask | undefined };

/**
 * Reads the changes that a request makes. Fields in its mask are set or cleared; without a mask, the fields that it
 * sends are set.
 *
 * @param options.request the request's message type, whose fields have the same names as the object's.
 * @param options.names fields of the request that identify the object and cannot change.
 * @param options.required fields that cannot be cleared.
 * @returns a function that changes an object, a message of type `options.target`.
 * @throws ServiceError INVALID_PARAMETERS for a mask with a field that cannot be changed or cleared.
 */
export function fieldChanges(
  request: UpdateRequest,
  options: {
    readonly request: DescMessage;
    readonly target: DescMessage;
    readonly names: readonly string[];
    readonly required: readonly string[];
  },
): (target: Message) => void {
  const fixed = [...options.names, 'update_mask'];
  const changeable = options.request.fields.filter(({ name }) => !fixed.includes(name));
  const paths =
    request.updateMask?.paths ??
    changeable.filter((field) => isFieldSet(request, field)).map(({ name }) => name);
  const changes = paths.map((path) => {
    const field = changeable.find(({ name }) => name === path);
    const target = options.target.fields.find(({ name }) => name === path);
    if (!field || !target) throw notAllowed('update_mask', 'contains a field that cannot be changed');
    if (!isFieldSet(request, field) && options.required.includes(path)) {
      throw notAllowed(path, 'cannot be cleared');
    }
    return changeOf(request, field, target);
  });
  return (target) => {
    for (const change of changes) change(target);
  };
}

function changeOf(request: Message, field: DescField, target: DescField): (message: Message) => void {
  if (!isFieldSet(request, field)) return (message) => clearField(message, target);
  const value = request[field.localName as keyof Message];
  return (message) => void Object.assign(message, { [target.localName]: value });
}
