// The demo application: an API with plans, a login and an "AI" route, all limited in the memory of this process.
import express from 'express';
import type { ErrorRequestHandler, Express, Request, RequestHandler } from 'express';
import { getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import type { LimiterEvents, Plan } from 'limitkeeper';
import { apiLimits, loginLimits } from 'limitkeeper/presets';

interface Account {
  readonly name: string;
  readonly plan: Plan | 'unlimited';
}

/** Who may come, by bearer token. The plan belongs to the account: a plan that the client names is one that it chooses. */
const accounts = new Map<string, Account>([
  ['demo-free', { name: 'Frida', plan: { limit: 5, windowSec: 60 } }],
  ['demo-pro', { name: 'Pia', plan: { limit: 20, windowSec: 60 } }],
  ['demo-enterprise', { name: 'Enno', plan: { limit: 100, windowSec: 60 } }],
  ['demo-unlimited', { name: 'Uma', plan: 'unlimited' }],
]);

const USER = { email: 'demo@example.com', password: 'open sesame' };

/** The longest answer of the "model", in words, which are the units here. */
const MAX_ANSWER = 500;

export interface Demo {
  readonly app: Express;
  /** Waits for what is still being counted. */
  close(): Promise<void>;
}

/** @param log gets one line for each refusal. */
export function createDemo(log: (line: string) => void): Demo {
  // A store of its own: the same as the default one, but forgotten with the demo.
  const store = new MemoryStore();
  const api = apiLimits({ store });
  const login = loginLimits({ store });
  const report = rateLimit({
    scope: 'report.account',
    plan: req => accountOf(req).plan,
    keyFn: req => accountOf(req).name,
    store,
  });
  const ai = rateLimit({
    scope: 'ai.account.day',
    limit: 50_000,
    windowSec: 86_400,
    keyFn: req => accountOf(req).name,
    cost: req => wordsIn(promptOf(req)) + MAX_ANSWER,
    reserve: true,
    store,
  });

  const app = express();
  app.disable('x-powered-by');

  // Limits first: what is refused here costs no look-up of a token and no parsing of a body.
  app.use('/api', api, authenticate);
  app.get('/api/hello', (req, res) => {
    res.json({ hello: callers.get(req)?.name ?? 'stranger' });
  });
  app.get('/api/report', requireAccount, report, (req, res) => {
    res.json({
      report: 'All is well.',
      remaining: getRateLimit(req).scope('report.account').reading?.remaining,
    });
  });
  app.post('/api/ask', requireAccount, express.json(), requirePrompt, ai, async (req, res) => {
    const prompt = promptOf(req);
    const answer = `You asked: ${prompt}`;
    const cost = wordsIn(prompt) + wordsIn(answer);
    await getRateLimit(req).settle(cost);
    const { reading } = getRateLimit(req).scope('ai.account.day');
    res.json({ answer, reserved: wordsIn(prompt) + MAX_ANSWER, cost, remaining: reading?.remaining });
  });

  app.post('/login', express.json(), login, (req, res) => {
    const { email, password } = (req.body ?? {}) as Partial<Record<'email' | 'password', unknown>>;
    if (email === USER.email && password === USER.password) res.json({ welcome: email });
    else res.status(401).json({ error: 'invalid_credentials' });
  });

  app.use((_req, res) => {
    res.status(404).json({ error: 'not_found' });
  });
  app.use(failed);

  const limiters = [api, login, report, ai].map(({ limiter }) => limiter);
  for (const limiter of limiters)
    limiter.on('refused', event => {
      log(refusalLine(event));
    });
  return {
    app,
    close: async () => {
      await Promise.all(limiters.map(limiter => limiter.close()));
    },
  };
}

const callers = new WeakMap<Request, Account>();

/** A token that is there must be right; a request without one goes on as a stranger. */
const authenticate: RequestHandler = (req, res, next) => {
  const token = /^bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
  const account = token === undefined ? undefined : accounts.get(token);
  if (req.headers.authorization !== undefined && account === undefined) {
    res.status(401).set('WWW-Authenticate', 'Bearer error="invalid_token"').json({ error: 'invalid_token' });
    return;
  }
  if (account !== undefined) callers.set(req, account);
  next();
};

const requireAccount: RequestHandler = (req, res, next) => {
  if (callers.has(req)) next();
  else res.status(401).set('WWW-Authenticate', 'Bearer').json({ error: 'token_required' });
};

function accountOf(req: Request): Account {
  const account = callers.get(req);
  if (account === undefined) throw new Error('this route needs requireAccount before it');
  return account;
}

const requirePrompt: RequestHandler = (req, res, next) => {
  if (promptOf(req) === '') res.status(422).json({ error: 'prompt_required' });
  else next();
};

function promptOf(req: Request): string {
  const prompt = (req.body as { readonly prompt?: unknown } | undefined)?.prompt;
  return typeof prompt === 'string' ? prompt.trim() : '';
}

const wordsIn = (text: string): number => text.split(/\s+/).filter(word => word !== '').length;

const failed: ErrorRequestHandler = (error: { readonly status?: number }, _req, res, next) => {
  if (res.headersSent) {
    next(error);
    return;
  }
  // A body that is no JSON brings its own status.
  const status = error.status ?? 500;
  if (status >= 500) console.error(error);
  res.status(status).json({ error: status < 500 ? 'bad_request' : 'internal' });
};

/** Hashes only: a log must not tell who was refused. */
function refusalLine({ scope, subjectHash, decision }: LimiterEvents['refused']): string {
  const { reason, retryAfterMs } = decision;
  const wait = retryAfterMs === null ? 'for good' : `for ${String(Math.ceil(retryAfterMs / 1000))} s`;
  return `refused  ${scope ?? '-'}  subject ${subjectHash?.slice(0, 12) ?? '-'}…  ${reason}, ${wait}`;
}
