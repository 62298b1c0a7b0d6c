import { describe, expect, it } from 'vitest';
import { differences } from './match-record.ts';

describe('comparing records', () => {
  it('equal records have no differences, whatever the order of their fields', () => {
    expect(differences('{"a": 1, "b": [true, null, "x"]}', '{"b":[true,null,"x"],"a":1}')).toEqual([]);
  });

  it.each([
    ['a missing field', '{"a": {"b": null}}', '{"a": {}}', 'a.b: missing'],
    ['an extra field', '{"a": {}}', '{"a": {"b": null}}', 'a.b: not expected, got null'],
    ['another text', '{"a": "x"}', '{"a": "y"}', 'a: expected "x", got "y"'],
    ['a number in place of a string', '{"a": "1"}', '{"a": 1}', 'a: expected "1", got 1'],
    ['null in place of an empty string', '{"a": ""}', '{"a": null}', 'a: expected "", got null'],
    [
      'a list in place of an object',
      '{"a": {}}',
      '{"a": []}',
      'a: expected an object with no fields, got a list of 0',
    ],
    [
      'an object in place of a number',
      '{"a": 1}',
      '{"a": {"text": "1"}}',
      'a: expected 1, got an object with text',
    ],
    ['a shorter list', '{"a": [1, 2]}', '{"a": [1]}', 'a: expected 2 elements, got 1'],
    ['a difference in a list', '[{"a": 1}, {"a": 2}]', '[{"a": 1}, {"a": 3}]', '[1].a: expected 2, got 3'],
    ['a number in a different notation', '{"a": 3000.00}', '{"a": 3000}', 'a: expected 3000.00, got 3000'],
    ['a decimal in place of an integer', '{"a": 1}', '{"a": 1.0}', 'a: expected 1, got 1.0'],
    ['a placeholder in the actual record', '{"a": "x"}', '{"a": "<uuid>"}', 'a: expected "x", got "<uuid>"'],
  ])('%s is reported with its path', (_what, expected, actual, line) => {
    expect(differences(expected, actual)).toEqual([line]);
  });

  it('every difference is reported', () => {
    expect(differences('{"a": 1, "b": 2, "c": 3}', '{"a": 1, "b": 3}')).toHaveLength(2);
  });

  it.each([
    ['<uuid>', '"5e550000-0000-4000-8000-000000000001"', '"5e550000-0000-4000-8000-00000000000"'],
    ['<timestamp>', '"2026-01-31T09:08:07.123456Z"', '"2026-01-31T09:08:07.123Z"'],
    ['<6 letters or digits>', '"0A2345"', '"0a2345"'],
    ['<12 digits>', '"012345678901"', '"0123456789012"'],
    ['a-<uuid>', '"a-5e550000-0000-4000-8000-000000000001"', '"b-5e550000-0000-4000-8000-000000000001"'],
    ['http://<host>/a.b', '"http://127.0.0.1:8080/a.b"', '"http://127.0.0.1:8080/aXb"'],
    ['<provider timestamp>', '"2026-01-31T09:08:07.123Z"', '"2026-01-31T09:08:07.123456Z"'],
  ])('the placeholder %s matches only values of its form', (placeholder, good, bad) => {
    const expected = JSON.stringify({ a: placeholder });
    expect(differences(expected, `{"a": ${good}}`)).toEqual([]);
    for (const wrong of [bad, '""', 'null', '[]', '123456789012']) {
      expect(differences(expected, `{"a": ${wrong}}`), wrong).toHaveLength(1);
    }
    expect(differences(expected, '{}')).toEqual(['a: missing']);
  });

  it('an unknown placeholder is refused', () => {
    expect(() => differences('{"a": "<anything>"}', '{"a": "x"}')).toThrow('<anything> is not a placeholder');
  });
});
