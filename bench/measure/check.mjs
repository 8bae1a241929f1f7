// Whoever is timed has to count right: what does less is no contender.
import assert from 'node:assert/strict';

/**
 * @typedef {object} Contender
 * @property {string} name
 * @property {boolean} [own] it is limitkeeper
 * @property {boolean} [onlyCounts] a yardstick that refuses nobody
 * @property {(limit: number) => (subject: string) => Promise<unknown>} make one decision, by a limiter made for the purpose
 * @property {(answer: unknown) => boolean} passed
 * @property {(answer: unknown, limit: number) => number} left
 * @property {Record<string, RegExp>} [headers] of the first answer of five
 */

/** A number that no test of somebody else has used. */
let fresh = 0;
const newcomer = () => `192.0.2.${(fresh += 1) % 250}`;

/** A limiter that is used in the moment in which it is made looks like one that is made anew for every request. */
export const loaded = Promise.resolve();

/** Of a limit of 5, five pass and the sixth is refused, and the headers say so. */
export async function checkContender(contender) {
  const { name, make, left, onlyCounts = false, headers = {} } = contender;
  const decide = make(5);
  await loaded;
  const subject = newcomer();
  const answers = [];
  for (let i = 0; i < 6; i += 1) answers.push(await verdict(contender, decide(subject)));
  const passed = answers.map(answer => answer.passed);
  const lefts = answers.slice(0, 5).map(({ answer }) => left(answer, 5));
  assert.deepEqual(lefts, [4, 3, 2, 1, 0], `${name}: what is left`);
  assert.deepEqual(passed, [true, true, true, true, true, onlyCounts], `${name}: who passes`);
  const [first, refused] = [answers[0].answer, answers[5].answer];
  for (const [header, form] of Object.entries(headers)) {
    assert.match(String(first.getHeader(header)), form, `${name}: ${header}`);
  }
  if (Object.keys(headers).length > 0) {
    assert.equal(refused.statusCode, 429, `${name}: the status of a refusal`);
    assert.match(String(refused.getHeader('Retry-After')), /^\d+$/, `${name}: Retry-After`);
  }
}

/** Of a limit of 5, five of 64 that come at once pass: where answers are waited for. */
export async function checkAtOnce(contender) {
  const { name, make, onlyCounts = false } = contender;
  const decide = make(5);
  await loaded;
  const subject = newcomer();
  const crowd = await Promise.all(Array.from({ length: 64 }, () => verdict(contender, decide(subject))));
  assert.equal(crowd.filter(({ passed }) => passed).length, onlyCounts ? 64 : 5, `${name}: 64 at once`);
}

/** A refusal by rate-limiter-flexible is a rejection that is no Error. */
async function verdict({ passed }, answering) {
  try {
    const answer = await answering;
    return { passed: passed(answer), answer };
  } catch (error) {
    if (error instanceof Error) throw error;
    return { passed: false, answer: error };
  }
}

const LIMIT = 1_000_000;

/**
 * A contender made ready for bursts in which everybody passes.
 *
 * `verify()`: has everything that was asked been counted?
 */
export function runnerOf({ name, make, passed, left }, subjectOf, subjects) {
  const decide = make(LIMIT);
  let calls = 0;
  return {
    name,
    run: i => {
      calls += 1;
      return decide(subjectOf(i));
    },
    isRight: passed,
    verify: async () => {
      const before = calls;
      for (let i = 0; i < Math.min(20, subjects); i += 1) {
        const counted = LIMIT - left(await decide(subjectOf(i)), LIMIT) - 1;
        const asked = Math.floor(before / subjects) + (i < before % subjects ? 1 : 0);
        assert.equal(counted, asked, `${name}: what it counted in the bursts`);
      }
    },
  };
}
