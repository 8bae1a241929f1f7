// Every snippet of the smaller pages of the manual is type-checked and run as it stands there.
import type express from 'express';
import { DocPage } from '../support/pages.js';
import { Reader, statuses } from '../support/recipe.js';
import { serve } from '../support/served.js';
import type { Served } from '../support/served.js';

jest.setTimeout(120_000);

const events = new DocPage('docs/events.md');
const testing = new DocPage('docs/testing.md');
const errors = new DocPage('docs/errors.md');
const reader = new Reader();

beforeEach(() => {
  reader.begin();
});
afterEach(() => reader.end());
afterAll(() => {
  for (const page of [events, testing, errors]) page.expectAllRun();
});

test.each([events, testing, errors])('every snippet of $file type-checks', ({ file }) => {
  const readersOwn = `
import type { Express } from 'express';
declare global {
  const app: Express;
}
`;
  expect(new DocPage(file).typeMistakes(readersOwn)).toEqual([]);
});

test('Events', async () => {
  await reader.run(events.snippet('Events'));
});

test('A clock of your own', async () => {
  await reader.serve();
  const asked: number[] = [];
  const request = async (): Promise<void> => {
    // Behind what the snippet has put before it.
    if (asked.length === 0) reader.app.use((_req, res) => void res.json({}));
    asked.push((await reader.ask('/')).status);
  };
  // The comments of the snippet, done.
  const code = testing
    .snippet('A clock of your own')
    .replace('// The first request passes, the second is refused.', 'await request(); await request();')
    .replace('// The next one passes.', 'await request(); await request();');
  await reader.run(`${code}\nawait request();`, { request });
  expect(asked).toEqual([200, 429, 200, 429, 200]);
});

describe('Resetting between tests', () => {
  test('two applications that make their stores count apart', async () => {
    const { exports } = await reader.run(testing.snippet('Resetting between tests'));
    const { createApp } = exports as { createApp: () => express.Express };
    const shops: Served[] = [await serve(createApp()), await serve(createApp())];
    for (const shop of shops) {
      expect(await statuses(3, () => shop.ask('/'))).toEqual([200, 200, 429]);
      await shop.close();
    }
  });

  test('resetAll forgets what was counted', async () => {
    const heading = 'Resetting between tests';
    const code = testing.snippet(heading, 1).replace('await limit', 'reset = () => limit');
    let reset = async (): Promise<void> => {};
    await reader.recipe(`let reset; ${code} keep(reset);`, {
      keep: (made: () => Promise<void>) => {
        reset = made;
      },
    });
    expect(await statuses(3, () => reader.ask('/'))).toEqual([200, 200, 429]);
    await reset();
    expect(await statuses(3, () => reader.ask('/'))).toEqual([200, 200, 429]);
  });
});

test('Telling them apart', async () => {
  const log = jest.spyOn(console, 'log').mockImplementation();
  await reader.run(errors.snippet('Telling them apart'));
  expect(log.mock.calls).toEqual([['ERR_LIMITKEEPER_OPTION_RANGE', 'limit']]);
});
