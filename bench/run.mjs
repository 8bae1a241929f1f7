// npm run bench: every section in a process of its own, told as it ends.
import { inChild } from './measure/child.mjs';
import { HELP, readOptions } from './options.mjs';
import { writeChart } from './report/chart.mjs';
import { machine } from './report/machine.mjs';
import { writePage } from './report/page.mjs';
import { addResult, readResults, writeResults } from './report/results.mjs';
import { table, verdicts } from './report/table.mjs';

// A bench makes many limiters and uses them at once, like an app that makes one for every request.
const FLAGS = ['--expose-gc', '--disable-warning=LIMITKEEPER_CREATED_IN_HANDLER'];

let options;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  console.error(error.message);
  process.exit(2);
}
if (options.help) console.log(HELP);
else if (options.render) await render(await readResults());
else await measure(options);

async function measure({ sections, keep, scale }) {
  let results = keep ? await readResults() : {};
  const failed = [];
  for (const name of sections) {
    const circumstances = { at: new Date().toISOString(), quick: scale.quick, machine: machine() };
    try {
      const url = new URL(`sections/${name}.mjs`, import.meta.url);
      const measured = [await inChild(url, scale, FLAGS)].flat();
      for (const one of measured) console.log(`\n${table(one)}\n${verdicts(one)}`);
      results = addResult(results, name, { ...circumstances, tables: measured });
      // After each: a long run may be broken off.
      await writeResults(results, keep);
    } catch (error) {
      failed.push(name);
      console.error(`\n${name}: ${error.stack}`);
    }
  }
  if (keep) await render(results);
  if (failed.length > 0) {
    console.error(`\nfailed: ${failed.join(', ')}`);
    process.exitCode = 1;
  }
}

async function render(results) {
  await writePage(results);
  await writeChart(results);
}
