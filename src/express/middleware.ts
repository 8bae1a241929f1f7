import type { NextFunction, Request, Response } from 'express';
import { received, typeError } from '../core/errors.js';
import { Limiter } from '../core/limiter.js';
import type { StoreFactories } from '../core/limiter-options.js';
import { chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { Verdict } from '../core/verdict.js';
import { countsByAddress, limiterOptions, requestRules } from './options.js';
import { markRefusal } from './outcome.js';
import { isPreflight } from './preflight.js';
import { PROBLEM_DETAIL } from './problem.js';
import { refuse } from './refuse.js';
import { LimiterRun, stateOf } from './request-state.js';
import type { RequestState, RunLimiter } from './request-state.js';
import { resolveRules } from './resolve.js';
import { hasLooseEnd, hasLooseEnds, settleBeforeEnd } from './settle.js';
import { TwiceWatch } from './twice-watch.js';
import type { RateLimitHandler, RateLimitOptions, WebSocketLike } from './types.js';
import { holdMessages, isWebSocket, speakForSocket, standsForSocket } from './web-socket.js';
import { CreationWatch, ProxyWatch, warnAboutStore, warnOnce } from './warnings.js';

/** Makes `rateLimit` for the face, which hands the stores in. */
export function middlewareMaker(factories: StoreFactories): (options: RateLimitOptions) => RateLimitHandler {
  return options => {
    const rules = requestRules(options);
    const { skip, countPreflight = true, onLimited, message, outcome, headers } = options;
    const detail = message ?? (options as { readonly [PROBLEM_DETAIL]?: string })[PROBLEM_DETAIL];
    const limiter = new Limiter(limiterOptions(options, rules), factories);
    const { engine, hashing, scopes } = limiter;
    // Who counts by something else has no use for addresses, nor for advice on them.
    const proxyWatch = rules.some(countsByAddress) ? new ProxyWatch() : undefined;
    const twiceWatch = new TwiceWatch();
    const mayHaveLooseEnds = rules.some(hasLooseEnd);
    const creationWatch = new CreationWatch();
    const runLimiter: RunLimiter = {
      engine,
      scopes,
      headers,
      reserves: rules.some(({ reserve }) => reserve),
      countsAll: rules.every(({ count }) => count === 'all'),
    };
    warnAboutStore(engine.store);

    const limitRequest = (req: Request, res: Response, next: NextFunction): void => {
      const state = stateOf(req);
      if (state.has(runLimiter)) {
        // Mounted twice on the way of this request: it is one request, and counts once.
        warnOnce('LIMITKEEPER_MOUNTED_TWICE');
        next();
        return;
      }
      state.response = res;
      const run = new LimiterRun(runLimiter);
      state.add(run);
      creationWatch.observe();
      proxyWatch?.observe(req);
      const release = standsForSocket(res) ? limitSocket(req, res) : undefined;
      let verdict: MaybePromise<Verdict | undefined>;
      try {
        verdict = decideRequest(run, req, res);
      } catch (error) {
        release?.();
        next(asFailure(error));
        return;
      }
      // What the handlers behind `next` throw is theirs: at once it goes to the caller, as in any middleware.
      if (isPromise(verdict)) answerLater(verdict, run, state, req, res, next, release);
      else {
        release?.();
        answer(verdict, run, state, req, res, next);
      }
    };

    const answerLater = (
      verdict: Promise<Verdict | undefined>,
      run: LimiterRun,
      state: RequestState,
      req: Request,
      res: Response,
      next: NextFunction,
      release: (() => void) | undefined,
    ): void => {
      let passed = false;
      const goNext: NextFunction = (...args: unknown[]): void => {
        passed = true;
        (next as (...rest: unknown[]) => void)(...args);
      };
      verdict
        .then(decided => {
          release?.();
          answer(decided, run, state, req, res, goNext);
        })
        .catch((error: unknown) => {
          release?.();
          if (passed) throw error;
          goNext(asFailure(error));
        });
    };

    /** @returns `undefined` where the request passes unasked */
    const decideRequest = (
      run: LimiterRun,
      req: Request,
      res: Response,
    ): MaybePromise<Verdict | undefined> => {
      if (!countPreflight && isPreflight(req)) return undefined;
      if (skip === undefined) return decideRules(run, req, res);
      // Strictly true: a listener, an object or a forgotten comparison must not switch the limiter off.
      return chain(skip(req, res), skipped => (skipped === true ? undefined : decideRules(run, req, res)));
    };

    const decideRules = (run: LimiterRun, req: Request, res: Response): MaybePromise<Verdict> => {
      const resolved = resolveRules(rules, req, res, hashing);
      if (isPromise(resolved)) {
        return resolved.then(checks => {
          run.asks(rules, checks);
          return engine.decide(run.checks);
        });
      }
      run.asks(rules, resolved);
      return engine.decide(run.checks);
    };

    const answer = (
      verdict: Verdict | undefined,
      run: LimiterRun,
      state: RequestState,
      req: Request,
      res: Response,
      next: NextFunction,
    ): void => {
      if (verdict === undefined) {
        next();
        return;
      }
      run.verdict = verdict;
      twiceWatch.observe(run, state);
      state.writeHeaders();
      if (verdict.allowed) {
        if (mayHaveLooseEnds && hasLooseEnds(run))
          settleBeforeEnd(run, state, outcome, req, res, failing(next));
        next();
        return;
      }
      const { decision } = verdict;
      markRefusal(res, true);
      if (onLimited === undefined || decision.reason === 'unavailable') {
        refuse(req, res, decision, message, detail);
        return;
      }
      const before = res.statusCode;
      if (!res.headersSent) res.statusCode = 429;
      let left = false;
      const leave = (args: readonly unknown[]): void => {
        if (left) return;
        left = true;
        if (!res.headersSent) res.statusCode = before;
        (next as (...rest: readonly unknown[]) => void)(...args);
      };
      const letGo: NextFunction = (...args: unknown[]): void => {
        // With an error the request is refused as before, in words that an error handler chooses.
        if (!left && !isFailure(args[0])) {
          run.letGo = true;
          run.silent = true;
          markRefusal(res, false);
          state.writeHeaders();
          if (mayHaveLooseEnds && hasLooseEnds(run))
            settleBeforeEnd(run, state, outcome, req, res, failing(next));
        }
        leave(args);
      };
      settleWith(
        () => onLimited(req, res, letGo, decision),
        () => undefined,
        error => {
          leave([asFailure(error)]);
        },
      );
    };

    // Express hands over its own requests, whatever the type of the handler says.
    const handler = (
      req: Request | WebSocketLike,
      res: Response | Request,
      next: (error?: unknown) => void,
    ): void => {
      if (isWebSocket(req)) {
        const request = res as Request;
        // express-ws has given it a response that stands for the socket, one for all limiters on the way.
        limitRequest(request, request.res as Response, next);
      } else limitRequest(req, res as Response, next);
    };
    return Object.assign(handler as RateLimitHandler, { limiter });
  };
}

/** What `next` takes for an error: whatever is truthy, but for the words with which Express leaves a route or a router. */
function isFailure(arg: unknown): boolean {
  return Boolean(arg) && arg !== 'route' && arg !== 'router';
}

/** A request that has become a socket. Answers what lets its messages come once it is decided. */
function limitSocket(req: Request & { readonly ws?: object }, res: Response): () => void {
  if (req.ws !== undefined && isWebSocket(req.ws)) speakForSocket(res, req.ws);
  return holdMessages(req);
}

const failing =
  (next: NextFunction) =>
  (error: unknown): void => {
    next(asFailure(error));
  };

/** A callback may throw anything, also what `next` would take for leave to go on without a limit. */
function asFailure(error: unknown): unknown {
  if (isFailure(error)) return error;
  return typeError(
    'ERR_LIMITKEEPER_CALLBACK',
    `a callback must throw or reject with an Error, got ${received(error)}.`,
    { cause: error },
  );
}

/**
 * Calls `then` with the result of `work`, or `failed` with its error. What `then` throws at once is thrown to the caller,
 * as in any middleware; what it throws later would be an unhandled rejection, and goes to `failed`.
 */
function settleWith<T>(
  work: () => MaybePromise<T>,
  then: (value: T) => void,
  failed: (error: unknown) => void,
): void {
  let result: MaybePromise<T>;
  let later: boolean;
  try {
    result = work();
    later = isPromise(result);
  } catch (error) {
    failed(error);
    return;
  }
  if (later) void Promise.resolve(result).then(then).catch(failed);
  else then(result as T);
}
