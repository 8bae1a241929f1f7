import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ConsoleMessage, Page } from 'playwright-core';
import { MemoryStore, subjectHash } from '../../../src/index.js';
import type { AdminOptions } from '../../../src/admin/index.js';
import { ADMIN_KEY, READ_KEY, WRONG_KEY } from '../../support/admin.js';
import { busyApp } from '../../support/busy-app.js';
import type { BusyApp } from '../../support/busy-app.js';
import { openBrowser } from '../../support/chromium.js';
import type { Browser } from '../../support/chromium.js';
import { answerQuestion, barriersOf, enterDesk } from './operators-page.js';
import { RemoteStore } from '../../support/stores.js';

/** What the page promises, and four times that: the machine of the test has other things to do. */
const APPEARS_MS = 2000 * 4;
const SETTLES_MS = 5000 * 4;

const PICTURES = join(__dirname, '../../../docs/images');
const EMAIL = 'a@b.c';
const ADDRESSES = ['203.0.113.7', '198.51.100.4'];

jest.setTimeout(120_000);

let browser: Browser;
let app: BusyApp;
let page: Page;
let said: ConsoleMessage[];
let thrown: Error[];

/** The block is shorter than the counter refuses: the page must not name its end alone. */
const BLOCKED_AND_USED_UP =
  /^login\.pair.*Blocked by the rule until .* UTC \(in 1\d min.*The counter is used up as well, until .* UTC\./;

/** Chromium's own line for an answer that is no success. */
const FAILED_403 = 'Failed to load resource: the server responded with a status of 403 (Forbidden)';

async function start(
  options: Omit<AdminOptions, 'limiters'> = {},
  store = new MemoryStore() as MemoryStore | RemoteStore,
) {
  app = await busyApp({ adminKey: ADMIN_KEY, readKey: READ_KEY, ...options }, store);
  page = await browser.context.newPage();
  said = [];
  thrown = [];
  page.on('console', message => said.push(message));
  page.on('pageerror', error => thrown.push(error));
  await page.addInitScript(() => {
    const violations: string[] = [];
    Object.assign(globalThis, { violations });
    addEventListener('securitypolicyviolation', event => {
      violations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(app.url);
}

const enter = (key?: string): Promise<void> => enterDesk(page, key);
const answer = (button: string): Promise<void> => answerQuestion(page, button);
const barriers = (): Promise<string[]> => barriersOf(page);

async function lockOut(email: string, address: string): Promise<void> {
  for (let i = 0; i < 4; i += 1) await app.visit('/login', address, email);
}

beforeAll(async () => {
  browser = await openBrowser({
    viewport: { width: 1280, height: 900 },
    colorScheme: 'light',
    timezoneId: 'Europe/Berlin',
    locale: 'en-GB',
  });
}, 300_000);

afterAll(async () => {
  await browser.close();
});

afterEach(async () => {
  const violations = await page.evaluate(
    () => (globalThis as unknown as { violations: string[] }).violations,
  );
  await page.close();
  await app.stop();
  expect(violations).toEqual([]);
  expect(thrown).toEqual([]);
  expect(
    said.filter(line => line.type() === 'error' && line.text() !== FAILED_403).map(line => line.text()),
  ).toEqual([]);
});

describe('the door', () => {
  it('refuses a wrong key and says so, then opens to the right one', async () => {
    await start();
    await page.fill('#key', WRONG_KEY);
    await page.press('#key', 'Enter');
    await page.waitForSelector('#key-error:not(:empty)');
    expect(await page.textContent('#key-error')).toMatch(/valid key/);
    expect(await page.isVisible('#desk')).toBe(false);
    expect(await page.inputValue('#key')).toBe('');
    expect(await barriers()).toEqual([]);
    expect(said.map(line => line.text())).toEqual([FAILED_403]);
    await enter();
    expect(await page.isVisible('#door')).toBe(false);
    expect(said).toHaveLength(1);
  });

  it('stays shut for a key that no header can carry', async () => {
    await start();
    await page.fill('#key', 'schlüssel für alle');
    await page.press('#key', 'Enter');
    expect(await page.textContent('#key-error')).toMatch(/letters/);
    expect(said).toEqual([]);
  });

  it('opens from an address without a slash at its end, too', async () => {
    await start();
    await page.goto(app.url.replace(/\/$/, ''));
    await enter();
    expect(await page.locator('#rules-rows tr').count()).toBe(3);
  });

  it('is not there where the browser brings what authorize asks for', async () => {
    let isOpen = false;
    await start({ authorize: () => isOpen });
    await page.waitForSelector('#no-session:not([hidden])');
    expect(await page.isVisible('#key-form')).toBe(false);
    isOpen = true;
    await page.click('#try-again');
    await page.waitForSelector('#desk:not([hidden])');
    expect(await page.isVisible('#leave')).toBe(false);
  });

  it('closes again when the key is no longer accepted, and lets the next one work with the same page', async () => {
    let answers: boolean | 'read' = true;
    await start({ authorize: () => answers });
    await page.waitForSelector('#desk:not([hidden])');
    await lockOut(EMAIL, ADDRESSES[0]!);
    await page.waitForSelector('#blocks-rows button:text-is("Unblock")', { timeout: APPEARS_MS });
    await page.fill('#one', EMAIL);
    await page.click('#lookup-form button[type=submit]');
    await page.click('.person button:text-is("Unblock")');
    await page.waitForSelector('dialog[open]');
    answers = false;
    await page.waitForSelector('#no-session:not([hidden])', { timeout: SETTLES_MS });
    expect(await page.isVisible('#desk')).toBe(false);
    expect(await page.locator('dialog[open]').count()).toBe(0);
    answers = 'read';
    await page.click('#try-again');
    await page.waitForSelector('#blocks-rows tr');
    expect(await page.locator('#blocks-rows button:text-is("Unblock")').count()).toBe(0);
    // Nothing is left of what the one before had typed and found.
    expect(await page.inputValue('#one')).toBe('');
    expect(await page.textContent('#lookup-note')).toBe('');
    expect(await page.locator('.person').count()).toBe(0);
  });
});

describe('at the desk', () => {
  it('the chart moves under load, and rules count', async () => {
    await start();
    app.load(50);
    await enter();
    const path = () => page.getAttribute('#traffic-chart path.allowed', 'd');
    const first = await path();
    await page.waitForFunction(
      before => document.querySelector('#traffic-chart path.allowed')?.getAttribute('d') !== before,
      first,
      { timeout: SETTLES_MS },
    );
    const second = await path();
    await page.waitForFunction(
      before => document.querySelector('#traffic-chart path.allowed')?.getAttribute('d') !== before,
      second,
      { timeout: SETTLES_MS },
    );
    await page.waitForFunction(
      () =>
        /^In the last five minutes [1-9][\d,]* requests were allowed and [1-9]/.test(
          document.querySelector('#traffic-chart svg')?.getAttribute('aria-label') ?? '',
        ),
      undefined,
      { timeout: SETTLES_MS },
    );
    const row = page.locator('#rules-rows tr', { hasText: 'api.ip' });
    expect(await row.locator('[data-name=Rule]').textContent()).toBe(
      '20 in 10 s, sliding window, blocks for 2 min',
    );
    expect(
      Number((await row.locator('[data-name=Allowed]').textContent())!.replace(',', '')),
    ).toBeGreaterThan(20);
    // Of one rule alone it is another chart: nobody logged in.
    await page.selectOption('#traffic-scope', 'login.pair');
    expect(await page.getAttribute('#traffic-chart svg', 'aria-label')).toMatch(
      /^In the last five minutes 0 requests/,
    );
  });

  it('an operator who knows the e-mail alone finds who is blocked, and frees them', async () => {
    await start();
    app.load(20);
    await enter();
    expect(await page.textContent('#blocks-note')).toMatch(/Nobody is blocked/);
    const hashes = ADDRESSES.map(address => subjectHash([EMAIL, address]));
    for (const address of ADDRESSES) await lockOut(EMAIL, address);
    await lockOut('x@y.z', '192.0.2.77');
    for (const hash of hashes) {
      await page.waitForSelector(`#blocks-rows button[title$="${hash}"]`, { timeout: APPEARS_MS });
    }
    await app.quiet();

    await page.fill('#one', EMAIL);
    await page.click('#lookup-form button[type=submit]');
    await page.waitForSelector('.person');
    expect(await page.textContent('#lookup-note')).toBe('2 subjects are blocked with this part.');
    expect(await page.locator('.person .standing').allTextContents()).toEqual([
      expect.stringMatching(BLOCKED_AND_USED_UP),
      expect.stringMatching(BLOCKED_AND_USED_UP),
    ]);

    // Cancel changes nothing.
    await page.click('button:text-is("Unblock all 2")');
    await answer('Cancel');
    expect((await app.login.peek([EMAIL, ADDRESSES[0]!])).reason).toBe('blocked');

    await page.click('button:text-is("Unblock all 2")');
    await answer('Unblock');
    await page.waitForFunction(() => document.getElementById('toast')?.textContent === '2 blocks ended.');
    for (const address of ADDRESSES) expect((await app.login.peek([EMAIL, address])).reason).toBe('limit');
    expect((await app.login.peek(['x@y.z', '192.0.2.77'])).reason).toBe('blocked');
    for (const hash of hashes) {
      await page.waitForSelector(`#blocks-rows button[title$="${hash}"]`, {
        state: 'detached',
        timeout: APPEARS_MS,
      });
    }
    await page.waitForFunction(() =>
      document.getElementById('lookup-note')?.textContent.startsWith('Nobody is blocked'),
    );

    // Freed, yet the counter is used up: the whole key shows it, and a reset ends it.
    await page.check('input[value=parts]');
    await page.fill('#many', `${EMAIL}\n${ADDRESSES[0]!}`);
    await page.click('#lookup-form button[type=submit]');
    await page.waitForSelector('.standing:has-text("Used up: refused for")');
    await page.click('button:text-is("Reset everywhere")');
    await answer('Reset');
    await page.waitForSelector('.standing:has-text("3 of 3 left")');
    expect(await app.visit('/login', ADDRESSES[0]!, EMAIL)).toBe(401);
  });

  it('looks up by hash from a row, and blocks by hand', async () => {
    await start();
    await enter();
    await lockOut(EMAIL, ADDRESSES[0]!);
    await page.click('#blocks-rows button.hash');
    await page.waitForSelector('.standing.blocked');
    expect(await page.inputValue('#one')).toBe(subjectHash([EMAIL, ADDRESSES[0]!]));
    await page.click('.standing:has-text("search.trial") >> button:has-text("Block…")');
    expect(await page.textContent('#dialog-text')).toMatch(/shadow mode: .* refuses nobody until/);
    await page.selectOption('#block-duration', 'forever');
    await answer('Block');
    await page.waitForSelector(
      '.standing:has-text("Blocked by hand, for ever. In shadow mode: it refuses nobody.")',
    );
    await page.waitForSelector('#blocks-rows tr:has-text("for ever")', { timeout: APPEARS_MS });
    await page.waitForSelector('#live-list li:has-text("by hand")', { timeout: APPEARS_MS });
    // An attack is one line that counts, so that what happened before it stays in sight.
    for (let i = 0; i < 5; i += 1) await app.visit('/login', ADDRESSES[0]!, EMAIL);
    await page.waitForSelector('#live-list li:first-child:has-text("login.pair (while blocked) 5 times")', {
      timeout: APPEARS_MS,
    });
  });

  it('shows times in the zone of the viewer with UTC beside', async () => {
    await start();
    await enter();
    await lockOut(EMAIL, ADDRESSES[0]!);
    await page.waitForSelector('#blocks-rows time', { timeout: APPEARS_MS });
    const [shown, iso] = await page
      .locator('#blocks-rows time')
      .first()
      .evaluate((time: HTMLTimeElement) => [time.textContent, time.dateTime]);
    const clock = (timeZone: string) =>
      new Date(iso).toLocaleTimeString('en-GB', { timeZone, hourCycle: 'h23' });
    expect(shown).toContain(clock('Europe/Berlin'));
    expect(shown).toContain(`${clock('UTC')} UTC`);
  });

  it('can be worked with the keyboard alone', async () => {
    await start();
    await lockOut(EMAIL, ADDRESSES[0]!);
    const { keyboard } = page;
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    await keyboard.type(ADMIN_KEY);
    await keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.id === 'one');
    await keyboard.type(EMAIL);
    await keyboard.press('Enter');
    await page.waitForSelector('.person');
    for (let i = 0; i < 10 && (await focused()) !== 'Unblock'; i += 1) await keyboard.press('Tab');
    await keyboard.press('Enter');
    await page.waitForSelector('dialog[open]');
    // Whoever presses Enter twice has changed nothing yet.
    expect(await focused()).toBe('Cancel');
    await keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'hidden' });
    expect(await focused()).toBe('Unblock');
    expect((await app.login.peek([EMAIL, ADDRESSES[0]!])).reason).toBe('blocked');
    await keyboard.press('Enter');
    await page.waitForSelector('dialog[open]');
    await keyboard.press('Tab');
    expect(await focused()).toBe('Unblock');
    await keyboard.press('Enter');
    await page.waitForFunction(() => document.getElementById('toast')?.textContent === '1 block ended.');
    expect((await app.login.peek([EMAIL, ADDRESSES[0]!])).reason).toBe('limit');
  });

  it('shows a read-only key no button that would be refused', async () => {
    await start();
    await lockOut(EMAIL, ADDRESSES[0]!);
    await enter(READ_KEY);
    expect(await page.textContent('#connection')).toBe('Live, read-only');
    await page.click('#blocks-rows button.hash');
    await page.waitForSelector('.standing.blocked');
    expect(await page.isDisabled('input[value=part]')).toBe(true);
    expect(await page.locator('#desk button').allTextContents()).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/Unblock|Reset|Block…/)]),
    );
    expect(said).toEqual([]);
  });

  it('says that it has lost the server, and finds it again', async () => {
    await start();
    await enter();
    await browser.context.setOffline(true);
    try {
      await page.waitForSelector('#connection.away', { timeout: SETTLES_MS });
      expect(await page.textContent('#connection')).toMatch(
        /^Reconnecting\. The server does not answer\. What you see is \d+ s old\.$/,
      );
      expect(await page.isVisible('#rules-rows tr')).toBe(true);
    } finally {
      await browser.context.setOffline(false);
    }
    await page.waitForSelector('#connection:not(.away)', { timeout: SETTLES_MS });
    await lockOut(EMAIL, ADDRESSES[0]!);
    await page.waitForSelector('#live-list li:has-text("blocked")', { timeout: SETTLES_MS });
    // Chromium tells of every request that found no network.
    said = said.filter(line => !/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/.test(line.text()));
  });

  it('says that the store is away, and what becomes of requests', async () => {
    const store = new RemoteStore(new MemoryStore(), 0);
    await start({}, store);
    await enter();
    store.behaviour = 'reject';
    // The list of blocks cannot be read either: the rules must go on without it.
    const { blocked } = store;
    store.blocked = () => Promise.reject(new Error('connect ECONNREFUSED'));
    await app.visit('/api', '203.0.113.1');
    await app.visit('/login', '203.0.113.1', EMAIL);
    await page.waitForSelector('#trouble:not([hidden])', { timeout: APPEARS_MS });
    await page.waitForSelector('#connection:text-matches("^Who is blocked cannot be read")');
    expect(await page.textContent('#trouble')).toMatch(
      /for api\.ip, search\.trial: requests pass uncounted until it is back\. The store does not answer for login\.pair: each process counts for itself until it is back\./,
    );
    store.behaviour = 'answer';
    store.blocked = blocked;
    await app.visit('/api', '203.0.113.1');
    await app.visit('/login', '203.0.113.1', EMAIL);
    await page.waitForSelector('#trouble[hidden]', { state: 'attached', timeout: APPEARS_MS });
    await page.waitForSelector('#connection:not(.away)', { timeout: APPEARS_MS });
    said = said.filter(line => !line.text().includes('status of 503'));
  });
});

it('keeps the key in the memory of the tab: in no URL, no storage, no page and no log', async () => {
  await start();
  await enter();
  await lockOut(EMAIL, ADDRESSES[0]!);
  await page.fill('#one', EMAIL);
  await page.click('#lookup-form button[type=submit]');
  await page.waitForSelector('.person');
  const kept = await page.evaluate(async () => ({
    url: location.href,
    history: [history.length, JSON.stringify(history.state)],
    local: localStorage.length,
    session: sessionStorage.length,
    cookie: document.cookie,
    databases: (await indexedDB.databases()).length,
    caches: isSecureContext ? (await caches.keys()).length : 0,
    html: document.documentElement.outerHTML,
    values: [...document.querySelectorAll('input, textarea')].map(input => (input as HTMLInputElement).value),
  }));
  expect(JSON.stringify(kept)).not.toContain(ADMIN_KEY);
  expect(kept).toMatchObject({ url: app.url, local: 0, session: 0, cookie: '', databases: 0, caches: 0 });
  expect(app.requests.length).toBeGreaterThan(5);
  for (const { url, headers } of app.requests) {
    const { 'x-admin-key': _key, ...others } = headers;
    expect(`${url} ${JSON.stringify(others)}`).not.toContain(ADMIN_KEY);
    // Nor does the e-mail travel in a URL.
    expect(url).not.toMatch(/a(?:@|%40)b/i);
  }
  expect(said).toEqual([]);
  await page.click('#leave');
  await page.waitForSelector('#key-form');
  expect(await page.isVisible('#desk')).toBe(false);
  const files = readdirSync(browser.folder, { recursive: true, encoding: 'utf8' }).map(name =>
    join(browser.folder, name),
  );
  for (const file of files.filter(name => statSync(name, { throwIfNoEntry: false })?.isFile() === true)) {
    expect([file, readFileSync(file).includes(ADMIN_KEY)]).toEqual([file, false]);
  }
});

it('has a policy that lets in nothing but its own script and style', async () => {
  await start();
  await enter();
  const caught = await page.evaluate(async () => {
    const { violations } = globalThis as unknown as { violations: string[] };
    const style = document.createElement('style');
    style.textContent = 'body { display: none }';
    document.head.append(style);
    document.body.setAttribute('style', 'display: none');
    const image = document.createElement('img');
    image.src = 'https://elsewhere.example/x.png';
    await fetch('https://elsewhere.example/').catch(() => undefined);
    const typed: string[] = [];
    try {
      document.body.innerHTML = '<b>x</b>';
    } catch (error) {
      typed.push((error as Error).name);
    }
    await new Promise(done => setTimeout(done, 50));
    return [...violations.splice(0).map(line => line.split(' ')[0]), ...typed].sort();
  });
  expect(caught).toEqual([
    'TypeError',
    'connect-src',
    'img-src',
    'require-trusted-types-for',
    'style-src-attr',
    'style-src-elem',
  ]);
  said = said.filter(line => !/violates|TrustedHTML/.test(line.text()));
});

describe.each([
  ['light', { width: 1280, height: 900 }],
  ['dark', { width: 1280, height: 900 }],
  ['phone', { width: 390, height: 844 }],
] as const)('in %s', (name, size) => {
  it('has no serious barrier, and nothing that sticks out', async () => {
    await start();
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: name === 'dark' ? 'dark' : 'light' });
    expect(await barriers()).toEqual([]);
    app.load(50);
    await enter();
    for (const address of ADDRESSES) await lockOut(EMAIL, address);
    await page.fill('#one', EMAIL);
    await page.click('#lookup-form button[type=submit]');
    await page.waitForSelector('.person');
    await page.waitForSelector('#blocks-rows tr');
    if (process.env['LIMITKEEPER_SCREENSHOTS'] === '1') await takePicture(name);
    await app.quiet();
    expect(await barriers()).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(
      0,
    );
    await page.click('button:text-is("Unblock all 2")');
    await page.waitForSelector('dialog[open]');
    expect(await barriers()).toEqual([]);
  });
});

/** For the docs: with something in the chart. */
async function takePicture(name: string): Promise<void> {
  await page.waitForTimeout(45_000);
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
  });
  await page.screenshot({ path: join(PICTURES, `limits-${name}.png`), fullPage: name !== 'phone' });
}
