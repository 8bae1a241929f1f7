import express5 from 'express';
import type { RequestHandler } from 'express';
import { MemoryStore } from 'limitkeeper';
import { loginLimits } from 'limitkeeper/presets';
import type { LoginLimitsHandler, LoginLimitsOptions } from 'limitkeeper/presets';
import { FakeClock } from 'limitkeeper/testing';
import { serve } from './served.js';
import type { Answer } from './served.js';

export const RIGHT = 'correct horse';

/** A login of one step at `/login` and one of two at `/login/email`, `/login/password`, on a clock that stands still. */
export interface LoginApp {
  readonly limits: LoginLimitsHandler;
  readonly clock: FakeClock;
  /** The names whose password was looked at. */
  readonly checked: unknown[];
  /** Sends a body; `address` is the client's. */
  post(path: string, json: unknown, address?: string): Promise<Answer>;
  close(): Promise<void>;
}

export async function loginApp(
  options: LoginLimitsOptions = {},
  {
    express = express5,
    isRight = (_name, password) => password === RIGHT,
  }: {
    readonly express?: typeof express5;
    readonly isRight?: (name: unknown, password: unknown) => boolean;
  } = {},
): Promise<LoginApp> {
  const clock = new FakeClock(1_750_000_000_000);
  const limits = loginLimits({ store: new MemoryStore({ clock }), ...options });
  const checked: unknown[] = [];
  const app = express();
  app.set('trust proxy', 1);
  app.use(express.json({ limit: '1mb' }));
  const login: RequestHandler = (req, res) => {
    const { email, password } = req.body as { email?: unknown; password?: unknown };
    checked.push(email);
    if (isRight(email, password)) res.json({});
    else res.status(401).json({});
  };
  app.post('/login', limits, login);
  app.post('/login/email', limits.resolve, (_req, res) => void res.json({}));
  app.post('/login/password', limits.password, login);
  const served = await serve(app);
  return {
    limits,
    clock,
    checked,
    post: (path, json, address = '198.51.100.7') =>
      served.ask(path, { json, headers: { 'x-forwarded-for': address } }),
    close: () => served.close(),
  };
}
