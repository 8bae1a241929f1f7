import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { createLimiter, MemoryStore, subjectHash } from '../../../src/index.js';
import type { Limiter } from '../../../src/index.js';
import { asAdmin } from '../../support/admin.js';
import { openBrowser } from '../../support/chromium.js';
import type { Browser } from '../../support/chromium.js';
import { call, pause } from '../../support/http.js';
import { answerQuestion, barriersOf, enterDesk, serveDesk } from './operators-page.js';
import type { ServedDesk } from './operators-page.js';
import { RemoteStore } from '../../support/stores.js';

/** What the page promises, and four times that: the machine of the test has other things to do. */
const APPEARS_MS = 2000 * 4;
const LEAST_FRAMES = 50 / 4;
const LONGEST_STOP_MS = 100 * 4;

const EMAIL = 'a@b.c';
const ADDRESSES = ['203.0.113.7', '198.51.100.4'] as const;
const WIDE = 'checkout.payment-methods.by-customer-account-and-network/v2/'.repeat(2).slice(0, 120);

jest.setTimeout(120_000);

let browser: Browser;
let page: Page;
let thrown: Error[];
const open: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  browser = await openBrowser({
    viewport: { width: 1280, height: 900 },
    timezoneId: 'Europe/Berlin',
    locale: 'en-GB',
  });
}, 300_000);

afterAll(async () => {
  await browser.close();
});

beforeEach(async () => {
  page = await browser.context.newPage();
  thrown = [];
  page.on('pageerror', error => thrown.push(error));
});

afterEach(async () => {
  await page.close();
  for (const one of open.splice(0)) await one.stop();
  expect(thrown).toEqual([]);
});

async function desk(limiters: readonly Limiter[]): Promise<ServedDesk> {
  const served = await serveDesk({ limiters });
  open.push(served);
  await page.goto(served.url);
  await enterDesk(page);
  return served;
}

const loginLimiter = (store = new MemoryStore() as MemoryStore | RemoteStore): Limiter =>
  createLimiter({ scope: 'login.pair', limit: 3, windowSec: 900, blockSec: [900, 3600], store });

async function lockOut(limiter: Limiter, ...subjects: readonly (readonly string[])[]): Promise<void> {
  for (const subject of subjects) for (let i = 0; i < 4; i += 1) await limiter.consume(subject);
}

async function lookUp(by: 'part' | 'parts' | 'hash', text: string): Promise<void> {
  await page.check(`input[value=${by}]`);
  await page.fill(by === 'parts' ? '#many' : '#one', text);
  await page.click('#lookup-form button[type=submit]');
}

const topOf = async (selector: string): Promise<number> =>
  (await page.locator(selector).first().boundingBox())?.y ?? NaN;

/** The text of the first row that has a scope, as soon as there is one. */
const firstHash = (): Promise<string | null> =>
  page.locator('#blocks-rows .hash').first().getAttribute('title');

describe('under a thousand blocks', () => {
  const flooded = async () => {
    const store = new MemoryStore();
    const wide = createLimiter({ scope: WIDE, limit: 5, windowSec: 60, store });
    const other = createLimiter({ scope: 'other', limit: 5, windowSec: 60, store });
    for (let i = 0; i < 990; i += 1) await wide.block(`w${String(i)}`, 600);
    for (let i = 0; i < 10; i += 1) await other.block(`o${String(i)}`, 600);
    await pause(2);
    await wide.block('newest', 600);
    return { wide, other };
  };

  it('shows what happens first, then the newest, in pages, with a true count and a filter by scope', async () => {
    const { wide, other } = await flooded();
    await desk([wide, other]);
    for (let i = 0; i < 3; i += 1) await wide.consume('newest');
    await page.waitForSelector('#blocks-rows tr');
    expect(await page.textContent('#blocks-count')).toBe('1,001');
    expect(await page.textContent('#blocks-range')).toBe('1–50 of 1,001');
    expect(await page.locator('#blocks-rows tr').count()).toBe(50);
    expect(await firstHash()).toBe(`Look up ${subjectHash('newest')}`);
    // The chart, who refuses, and the first blocks are on the first screen.
    expect(await topOf('#traffic-chart')).toBeLessThan(300);
    await page.waitForSelector('#refusals-rows li');
    expect(await topOf('#refusals-rows li')).toBeLessThan(300);
    expect(await topOf('#blocks-rows tr:nth-child(3)')).toBeLessThan(900);

    // The column beside the list is not empty, wherever in the list one is.
    await page.locator('#blocks-rows tr').nth(40).scrollIntoViewIfNeeded();
    const form = await topOf('#lookup-form');
    expect(form).toBeGreaterThanOrEqual(0);
    expect(form).toBeLessThan(900);

    await page.click('#blocks-older');
    await page.waitForSelector('#blocks-range:text-is("51–100 of 1,001")');
    expect(await page.isEnabled('#blocks-newer')).toBe(true);
    // Newer ones come on top, and push nothing off the page that is read.
    const second = await firstHash();
    await wide.block('newer still', 600);
    await page.waitForSelector('#blocks-range:text-is("52–101 of 1,002")', { timeout: APPEARS_MS });
    expect(await firstHash()).toBe(second);

    // Back on the first page its button has nowhere to lead: the focus goes on from the heading of the list.
    await page.focus('#blocks-newer');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#blocks-range:text-is("1–50 of 1,002")', { timeout: APPEARS_MS });
    await page.waitForFunction(() => document.activeElement?.id === 'blocks-title');

    await page.selectOption('#blocks-scope', 'other');
    await page.waitForSelector('#blocks-pages', { state: 'hidden' });
    expect(await page.locator('#blocks-rows tr').count()).toBe(10);
    expect(await page.locator('#blocks-rows .scope').allTextContents()).toEqual(Array(10).fill('other'));
    expect(await page.textContent('#blocks-count')).toBe('1,002');
  });

  it('a wide scope takes no room from the subject, on a screen of any width', async () => {
    const { wide, other } = await flooded();
    await desk([wide, other]);
    await page.waitForSelector('#blocks-rows tr');
    for (const width of [1280, 1000, 700, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const hash = page.locator('#blocks-rows .hash').first();
      const [shown, text] = await hash.evaluate(element => [
        element.getBoundingClientRect().right <= element.closest('th')!.getBoundingClientRect().right + 1,
        element.textContent,
      ]);
      expect([width, shown, text]).toEqual([width, true, `${subjectHash('newest').slice(0, 12)}…`]);
      const height = (await hash.boundingBox())?.height ?? NaN;
      expect(height).toBeLessThan(30);
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
      ).toBeLessThanOrEqual(0);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    expect(await barriersOf(page)).toEqual([]);
  });

  it('draws 50 frames a second and never stops, while thousands are refused', async () => {
    const { wide, other } = await flooded();
    const attacked = createLimiter({
      scope: 'attacked',
      limit: 1,
      windowSec: 60,
      blockSec: 600,
      store: new MemoryStore(),
    });
    await desk([wide, other, attacked]);
    await page.waitForSelector('#blocks-rows tr');
    const attacker = { going: true };
    let refused = 0;
    const attack = (async () => {
      for (let i = 0; attacker.going; i += 1) {
        for (let n = 0; n < 20; n += 1)
          refused += Number(!(await attacked.consume(`x${String((i * 20 + n) % 1500)}`)).allowed);
        await pause(10);
      }
    })();
    const { frames, longest } = await page.evaluate(async () => {
      const times: number[] = [];
      await new Promise<void>(done => {
        const frame = (time: number): void => {
          times.push(time);
          if (time - times[0]! < 6000) requestAnimationFrame(frame);
          else done();
        };
        requestAnimationFrame(frame);
      });
      const gaps = times.slice(1).map((time, i) => time - times[i]!);
      return { frames: gaps.length / ((times.at(-1)! - times[0]!) / 1000), longest: Math.max(...gaps) };
    });
    attacker.going = false;
    await attack;
    expect(refused).toBeGreaterThan(1000);
    expect(frames).toBeGreaterThanOrEqual(LEAST_FRAMES);
    expect(longest).toBeLessThanOrEqual(LONGEST_STOP_MS);
    expect(await page.locator('#live-list li').count()).toBeLessThanOrEqual(60);
    expect(await page.locator('#blocks-rows tr').count()).toBe(50);
    if (process.env['LIMITKEEPER_FIGURES'] === '1') console.log({ frames, longest, refused });
  });
});

describe('what to press', () => {
  it('a shadow block looks like none that refuses, is counted apart, and nothing about it stands out', async () => {
    const store = new MemoryStore();
    const login = loginLimiter(store);
    const trial = createLimiter({
      scope: 'trial',
      limit: 1,
      windowSec: 60,
      blockSec: 600,
      mode: 'shadow',
      store,
    });
    await desk([login, trial]);
    await lockOut(trial, ['x'], ['y']);
    await login.block('z', 600);
    await page.waitForSelector('#blocks-rows tr.real', { timeout: APPEARS_MS });
    await page.waitForSelector('#refusals-rows li', { timeout: APPEARS_MS });
    expect(await page.textContent('#blocks-count')).toBe('1, and 2 in shadow mode');
    const row = page.locator('#blocks-rows tr.shadow').first();
    expect(await row.textContent()).toMatch(/shadow: refuses nobody/);
    expect(await row.locator('button.main').count()).toBe(0);
    expect(await page.locator('#blocks-rows tr.real button.main').allTextContents()).toEqual(['Unblock']);
    // Nobody was refused, in the sum or by scope.
    expect(await page.getAttribute('#traffic-chart svg', 'aria-label')).toMatch(
      / 0 requests were allowed and 0 refused;/,
    );
    expect(await page.locator('#refusals-rows li').allTextContents()).toEqual([
      expect.stringMatching(/^trial would be\d+$/),
    ]);
    await page.selectOption('#traffic-scope', 'trial');
    expect(await page.getAttribute('#traffic-chart svg', 'aria-label')).toMatch(
      /and 0 refused by trial, and [1-9]\d* would have been;/,
    );
    expect(await page.isVisible('#legend-would')).toBe(true);
    await row.locator('.hash').click();
    await page.waitForSelector('.standing.shadow');
    expect(await page.locator('.person button.primary').count()).toBe(0);
    expect(await page.textContent('#lookup-note')).toBe(
      'Not blocked. Blocked in 1 in shadow mode, which refuses nobody.',
    );
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await barriersOf(page)).toEqual([]);
  });

  it('where the counter is used up too, the main button is the one that lets them in', async () => {
    const login = loginLimiter();
    await lockOut(login, [EMAIL, ADDRESSES[0]]);
    await login.block(['fresh@b.c', ADDRESSES[1]], 600);
    await desk([login]);
    await page.waitForSelector('#blocks-rows tr >> nth=1');
    const main = (hash: string) =>
      page
        .locator('#blocks-rows tr', { has: page.locator(`[title$="${hash}"]`) })
        .locator('button.main')
        .allTextContents();
    expect(await main(subjectHash([EMAIL, ADDRESSES[0]]))).toEqual(['Reset']);
    expect(await main(subjectHash(['fresh@b.c', ADDRESSES[1]]))).toEqual(['Unblock']);

    await lookUp('part', EMAIL);
    await page.waitForSelector('.person');
    expect(await page.locator('.person button.primary:visible').allTextContents()).toEqual(['Reset']);
    await page.click('.standing button:text-is("Unblock")');
    expect(await page.textContent('#dialog-text')).toMatch(
      /used up as well: their next request is refused again.*Reset lets them in/,
    );
    await answerQuestion(page, 'Cancel');
    await page.click('.standing button:text-is("Reset")');
    await answerQuestion(page, 'Reset');
    await page.waitForFunction(
      () => document.getElementById('toast')?.textContent === '1 counter forgotten.',
    );
    expect((await login.consume([EMAIL, ADDRESSES[0]])).allowed).toBe(true);
  });

  it('"everywhere" offers no end of blocks where there is none, and what forgets only where that helps', async () => {
    const store = new MemoryStore();
    const [login, api] = [
      loginLimiter(store),
      createLimiter({ scope: 'api', limit: 5, windowSec: 60, store }),
    ];
    await login.consume('alice');
    await desk([login, api]);
    await lookUp('parts', 'alice');
    await page.waitForSelector('.person');
    expect(await page.textContent('#lookup-note')).toBe('Not blocked.');
    const visible = () => page.locator('.person > .row button:visible').allTextContents();
    expect(await visible()).toEqual(['Reset everywhere']);
    expect(await page.locator('.person button.primary:visible').count()).toBe(0);
    await api.block('alice', 60);
    await page.waitForSelector('button:text-is("Unblock everywhere")', { timeout: APPEARS_MS });
    expect(await page.locator('.person > .row button.primary').allTextContents()).toEqual([
      'Unblock everywhere',
    ]);
  });

  it('the question says whom, as typed, and how many', async () => {
    const store = new MemoryStore();
    const [login, api] = [
      loginLimiter(store),
      createLimiter({ scope: 'api', limit: 5, windowSec: 60, store }),
    ];
    await lockOut(login, [EMAIL, ADDRESSES[0]], [EMAIL, ADDRESSES[1]]);
    await api.block([EMAIL, ADDRESSES[0]], 60);
    await login.block(['x@y.z', ADDRESSES[0]], 600);
    await desk([login, api]);
    const asked = async () => {
      await page.waitForSelector('dialog[open]');
      const text = [await page.textContent('#dialog-title'), await page.textContent('#dialog-text')].join(
        ' ',
      );
      await answerQuestion(page, 'Cancel');
      return text;
    };
    await lookUp('part', EMAIL);
    await page.waitForSelector('.person');
    await page.click('button:text-is("Unblock all 2")');
    expect(await asked()).toMatch(
      /^Unblock 2 subjects\? Ends 3 blocks of 2 subjects with a@b\.c in every scope\./,
    );
    await page.click('button:text-is("Reset all 2")');
    expect(await asked()).toMatch(
      /^Reset 2 subjects\? Forgets all that was counted of 2 subjects with a@b\.c in every scope, and 3 blocks\./,
    );

    await lookUp('parts', `${EMAIL}\n${ADDRESSES[0]}`);
    const digits = `${subjectHash([EMAIL, ADDRESSES[0]]).slice(0, 12)}…`;
    await page.waitForSelector(`.person:has-text("${EMAIL}, ${ADDRESSES[0]}")`);
    await page.click('button:text-is("Unblock everywhere")');
    expect(await asked()).toContain(
      `Ends 2 blocks of ${EMAIL}, ${ADDRESSES[0]} (subject ${digits}) in every scope.`,
    );
    // In the list, too, whoever was typed in this tab has a name; others have their digits.
    const rowOf = (hash: string) =>
      page.locator('#blocks-rows tr:has-text("login.pair")', { has: page.locator(`[title$="${hash}"]`) });
    await rowOf(subjectHash([EMAIL, ADDRESSES[0]]))
      .locator('button:text-is("Reset")')
      .click();
    expect(await asked()).toContain(
      `counted of ${EMAIL}, ${ADDRESSES[0]} (subject ${digits}) in login.pair, and 1 block.`,
    );
    const stranger = subjectHash(['x@y.z', ADDRESSES[0]]);
    await rowOf(stranger).locator('button:text-is("Unblock")').click();
    expect(await asked()).toMatch(
      new RegExp(
        `^Unblock one subject\\? Ends 1 block of subject ${stranger.slice(0, 12)}… in login\\.pair\\. What was counted stays\\.`,
      ),
    );
  });
});

describe('what is stale', () => {
  it('a result goes when something else, however wrong, is asked', async () => {
    const login = loginLimiter();
    await lockOut(login, [EMAIL, ADDRESSES[0]]);
    await desk([login]);
    await lookUp('part', EMAIL);
    await page.waitForSelector('.person');
    await lookUp('hash', 'no hash');
    expect(await page.textContent('#lookup-note')).toMatch(/64 hex digits/);
    expect(await page.locator('#lookup-result button:visible').count()).toBe(0);
    await lookUp('part', EMAIL);
    await page.waitForSelector('.person');
    await lookUp('parts', '  ');
    expect(await page.locator('#lookup-result button:visible').count()).toBe(0);
  });

  it('a result follows what another operator, or another process, has done, and keeps the focus', async () => {
    const login = loginLimiter();
    await lockOut(login, [EMAIL, ADDRESSES[0]]);
    const { url } = await desk([login]);
    await lookUp('parts', `${EMAIL}\n${ADDRESSES[0]}`);
    await page.waitForSelector('.standing.blocked');
    await page.focus('.standing button:text-is("Block…")');
    // In this process, by the routes: the stream tells.
    await call(`${url}unblock`, {
      method: 'POST',
      headers: asAdmin,
      body: { subject: { parts: [EMAIL, ADDRESSES[0]] } },
    });
    await page.waitForSelector('.standing:not(.blocked):has-text("Used up")', { timeout: APPEARS_MS });
    expect(await page.isVisible('.standing button:text-is("Unblock")')).toBe(false);
    // In the store, as from elsewhere: nobody tells.
    await login.reset([EMAIL, ADDRESSES[0]]);
    await page.waitForSelector('.standing:has-text("3 of 3 left")', { timeout: APPEARS_MS });
    expect(await page.isVisible('.standing button:text-is("Reset")')).toBe(false);
    expect(await page.textContent('#lookup-note')).toBe('Not blocked.');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Block…');
  });

  it('nothing can be pressed while the store is away, and what is there after it is true', async () => {
    const store = new RemoteStore(new MemoryStore(), 0);
    const login = loginLimiter(store);
    await lockOut(login, [EMAIL, ADDRESSES[0]]);
    await desk([login]);
    await lookUp('part', EMAIL);
    await page.waitForSelector('.person');
    const { blocked } = store;
    store.blocked = () => Promise.reject(new Error('connect ECONNREFUSED'));
    await page.waitForSelector('#connection.away', { timeout: APPEARS_MS });
    const isInert = (id: string) => page.evaluate(name => document.getElementById(name)?.inert, id);
    expect([await isInert('lookup-result'), await isInert('blocks-table')]).toEqual([true, true]);
    expect(await page.isVisible('#blocks-rows tr')).toBe(true);
    await login.reset([EMAIL, ADDRESSES[0]]);
    store.blocked = blocked;
    await page.waitForSelector('#connection:not(.away)', { timeout: APPEARS_MS * 2 });
    expect(await page.textContent('#lookup-note')).toMatch(/^Nobody is blocked with this part/);
    expect(await page.locator('.person').count()).toBe(0);
    expect([await isInert('lookup-result'), await isInert('blocks-table')]).toEqual([false, false]);
  });

  it('the note of a stream that broke off goes when it is read again, and the list says where events are missing', async () => {
    const login = loginLimiter();
    const served = await desk([login]);
    await lockOut(login, ['x']);
    await page.waitForSelector('#live-list li', { timeout: APPEARS_MS });
    served.hangUp();
    await page.waitForSelector('#live-note:has-text("broke off")', { timeout: APPEARS_MS });
    await page.waitForSelector('#live-list li:has-text("the stream broke off")', { timeout: APPEARS_MS });
    expect(await page.textContent('#live-note')).toBe('');
  });

  it('a process that died is counted no longer', async () => {
    const limiters = [0, 1].map(() =>
      createLimiter({ scope: 'api', limit: 5, windowSec: 60, store: new MemoryStore() }),
    );
    const desks = await Promise.all(limiters.map(limiter => serveDesk({ limiters: [limiter] })));
    open.push(...desks);
    // A balancer that gives each request to the next process, as long as there are two.
    let alive = 2;
    let turn = 0;
    const balancer = http.createServer((req, res) => {
      if (req.url?.includes('scopes') === true) turn += 1;
      const { port } = new URL(desks[turn % alive]!.url);
      const { method, url, headers } = req;
      req.pipe(
        http
          .request({ port, host: '127.0.0.1', method, path: url, headers }, answer => {
            res.writeHead(answer.statusCode ?? 502, answer.headers);
            answer.pipe(res);
          })
          .on('error', () => res.destroy()),
      );
    });
    await new Promise<void>(done => balancer.listen(0, '127.0.0.1', done));
    open.unshift({
      stop: async () => {
        balancer.closeAllConnections();
        await new Promise(done => balancer.close(done));
      },
    });
    await page.goto(`http://127.0.0.1:${String((balancer.address() as AddressInfo).port)}/ops/limits/`);
    await enterDesk(page);
    await page.waitForSelector('#rules-note:has-text("1 more answered here")', { timeout: APPEARS_MS });
    alive = 1;
    await page.waitForSelector('#rules-note:not(:has-text("more answered"))', { timeout: 80_000 });
  });
});

it('a hundred requests to a login of four rules are a hundred requests', async () => {
  const store = new MemoryStore();
  const login = createLimiter({
    store,
    rules: ['ip', 'email', 'pair', 'day'].map(name => ({
      scope: `login.${name}`,
      limit: 500,
      windowSec: 900,
    })),
  });
  await desk([login]);
  for (let i = 0; i < 100; i += 1) await login.consume('alice');
  await page.waitForFunction(
    () =>
      document
        .querySelector('#traffic-chart svg')
        ?.getAttribute('aria-label')
        ?.startsWith('In the last five minutes 100 requests were allowed and 0 refused;') === true,
    undefined,
    { timeout: APPEARS_MS },
  );
});

it('finds a subject by the twelve digits that lists show, whether it is on this page or not', async () => {
  const store = new MemoryStore();
  const [login, api] = [loginLimiter(store), createLimiter({ scope: 'api', limit: 0, windowSec: 60, store })];
  await login.block('oldest', 600);
  await pause(2);
  for (let i = 0; i < 60; i += 1) await login.block(`x${String(i)}`, 600);
  await desk([login, api]);
  await page.waitForSelector('#blocks-pages:not([hidden])');
  const hidden = subjectHash('oldest');
  expect(await page.locator(`[title$="${hidden}"]`).count()).toBe(0);
  await lookUp('hash', hidden.slice(0, 12));
  await page.waitForSelector(`.person [title="${hidden}"]`);
  // Refused, and not blocked: only this tab has seen the whole hash. Copied with the sign that cuts it short.
  await api.consume('nobody');
  await page.waitForSelector('#live-list .hash', { timeout: APPEARS_MS });
  await lookUp('hash', (await page.textContent('#live-list .hash'))!);
  await page.waitForSelector(`.person [title="${subjectHash('nobody')}"]`);
  await lookUp('hash', '0123456789ab');
  await page.waitForSelector('#lookup-note:has-text("Give all 64 digits")');
});

it('keeps local time and UTC in their places where dates are written from the right', async () => {
  const arabic = await openBrowser({
    locale: 'ar-EG',
    timezoneId: 'Africa/Cairo',
    viewport: { width: 1280, height: 900 },
  });
  try {
    const login = loginLimiter();
    await login.block('alice', 3 * 86_400);
    const served = await serveDesk({ limiters: [login] });
    open.push(served);
    const foreign = await arabic.context.newPage();
    await foreign.goto(served.url);
    await enterDesk(foreign);
    await foreign.check('input[value=parts]');
    await foreign.fill('#many', 'alice');
    await foreign.click('#lookup-form button[type=submit]');
    await foreign.waitForSelector('.standing.blocked time');
    const order = await foreign
      .locator('.standing.blocked time')
      .first()
      .evaluate(time => {
        // On one line, whatever room there is: where each letter stands is what matters.
        time.style.whiteSpace = 'nowrap';
        const walker = document.createTreeWalker(time, NodeFilter.SHOW_TEXT);
        const places: { text: string; left: number }[] = [];
        for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
          const text = node.textContent ?? '';
          for (let i = 0; i < text.length; i += 1) {
            const range = document.createRange();
            range.setStart(node, i);
            range.setEnd(node, i + 1);
            if (/\S/.test(text[i]!))
              places.push({ text: text[i]!, left: range.getBoundingClientRect().left });
          }
        }
        const half = time.textContent.indexOf('UTC') / 2;
        const middle = (from: number, to: number): number => {
          const part = places.slice(from, to);
          return part.reduce((sum, { left }) => sum + left, 0) / part.length;
        };
        const cut = Math.round(places.length * (half / time.textContent.length));
        return [middle(0, cut), middle(cut, places.length)];
      });
    expect(order[0]).toBeLessThan(order[1]!);
  } finally {
    await arabic.close();
  }
});

it('tells a person who opens a router without a key why it is closed, and nothing else', async () => {
  const served = await serveDesk({ limiters: [loginLimiter()], adminKey: '' });
  open.push(served);
  const reply = await page.goto(served.url);
  expect(reply?.status()).toBe(403);
  expect(await page.locator('body').innerText()).toBe(
    'Closed: no admin key is configured. Set the option adminKey to a secret of 16 characters or more.',
  );
  expect(await barriersOf(page)).toEqual([]);
});
