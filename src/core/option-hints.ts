/** An option that other packages have, and what it is here: by an option that is known where it was written. */
type Hints = readonly (readonly [option: string, hint: string])[];

const same = (option: string): Hints => [[option, option]];

const REDIS_STORE = "store: new RedisStore({ client }), of 'limitkeeper/redis'";
/** A client of Redis, whether given to a store or to a limiter. */
const CLIENT: Hints = [
  ['client', 'client, which is the client itself'],
  ['store', REDIS_STORE],
];
const ADDRESS: Hints = [
  ['client', 'client, e.g. client: new Redis(url)'],
  ['store', REDIS_STORE],
];

/** What other packages call it, where the names do not begin alike. */
const ELSEWHERE: Readonly<Record<string, Hints>> = {
  max: same('limit'),
  points: same('limit'),
  duration: same('windowSec'),
  keyGenerator: same('keyFn'),
  handler: same('onLimited'),
  requestWasSuccessful: same('outcome'),
  skipSuccessfulRequests: [['count', "count: 'failures' with an outcome"]],
  skipFailedRequests: [['count', "count: 'successes' with an outcome"]],
  standardHeaders: [['headers', 'headers: { standard }']],
  legacyHeaders: [['headers', 'headers: { legacy }']],
  passOnStoreError: same('failMode'),
  trustProxy: [['store', "app.set('trust proxy', 1), a setting of Express"]],
  keyPrefix: [...same('prefix'), ...same('scope')],
  client: CLIENT,
  redis: CLIENT,
  redisClient: CLIENT,
  storeClient: CLIENT,
  sendCommand: CLIENT,
  url: ADDRESS,
  redisUrl: ADDRESS,
  redisURL: ADDRESS,
};

/** What somebody may have meant by an option that is not known, for "Did you mean …?". */
export function optionHint(name: string, known: readonly string[]): string | undefined {
  const hints = Object.hasOwn(ELSEWHERE, name) ? (ELSEWHERE[name] ?? []) : [];
  const [, hint] = hints.find(([option]) => known.includes(option)) ?? [];
  return hint ?? known.find(option => option.toLowerCase().startsWith(name.slice(0, 4).toLowerCase()));
}
