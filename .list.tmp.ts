import { readFileSync, globSync, writeFileSync } from 'node:fs';
import { mutantsOf } from '/work/wt/mut/test/mutations/mutant.ts';
import { readTestsOf } from '/work/wt/mut/test/mutations/tests-of.ts';
process.chdir('/work/wt/mut');
const LEFT_OUT = /^test\/(faults|hostile|interop|main|main-refusals|overload.*|tls|tidy|mutations\/.*)\.test\.ts$/;
const testsOf = readTestsOf('.', (t) => !LEFT_OUT.test(t));
const files = ['store/operation-keys','store/group-commit','store/grouped-payments','store/operations','payments/finish-payment','payments/finish-operation','payments/claim-operation','store/payments','payments/on-their-way','payments/follow-up'].map(f=>`src/${f}.ts`);
for (const f of files) {
  const ms = mutantsOf(f, readFileSync(f,'utf8'));
  console.log(`\n## ${f} ${ms.length} mutants; tests: ${testsOf(f).slice(0,8).join(' ')}`);
  for (const m of ms) console.log(`${m.id} ${m.line} ${m.original.replace(/\s+/g,' ')} → ${m.replacement.replace(/\s+/g,' ')}`);
}
