import type { ServerResponse } from 'node:http';
import type { NextFunction } from 'express';
import type { Verdict } from '../core/verdict.js';
import { isPromise } from '../core/maybe-promise.js';
import { asFailure, isFailure } from './failure.js';
import { markRefusal } from './outcome.js';
import { errorBody, prefersProblem, problemBody } from './problem.js';
import type { LimiterRun } from './request-state.js';

/** Answers a refused request, or has `onLimited` do it. */
export function refuse(run: LimiterRun, verdict: Verdict): void {
  const { onLimited } = run.limiter.options;
  markRefusal(run.res, true);
  // That the store is away is nothing for a captcha.
  if (onLimited === undefined || verdict.reason === 'unavailable') sendRefusal(run, verdict);
  else refuseBy(onLimited, run, verdict);
}

type OnLimited = NonNullable<LimiterRun['limiter']['options']['onLimited']>;

/** What it throws or rejects with goes on as an error. It may leave by `next` once. */
function refuseBy(onLimited: OnLimited, run: LimiterRun, verdict: Verdict): void {
  const { res, req } = run;
  const before = res.statusCode;
  if (!res.headersSent) res.statusCode = 429;
  let left = false;
  const leave: NextFunction = (...args: readonly unknown[]): void => {
    if (left) return;
    left = true;
    if (!res.headersSent) res.statusCode = before;
    (run.next as (...rest: readonly unknown[]) => void)(...args);
  };
  const letGo: NextFunction = (...args: readonly unknown[]): void => {
    // With an error the request is refused as before, in words that an error handler chooses.
    if (!left && !isFailure(args[0])) goesOn(run);
    (leave as (...rest: readonly unknown[]) => void)(...args);
  };
  const failed = (error: unknown): void => {
    leave(asFailure(error));
  };
  try {
    const answer: unknown = onLimited(req, res, letGo, verdict.decision);
    if (isPromise(answer)) Promise.resolve(answer).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** Uncounted, and no refusal any more; how it ends still counts. */
function goesOn(run: LimiterRun): void {
  run.letGo = true;
  run.silent = true;
  markRefusal(run.res, false);
  run.state.writeHeaders();
  if (run.hasLooseEnds) run.limiter.settler?.settle(run);
}

/** 429, or 503 where the store failed and the limiter fails closed. */
function sendRefusal({ req, res, limiter }: LimiterRun, verdict: Verdict): void {
  if (res.headersSent || res.writableEnded) return;
  const asProblem = prefersProblem(req.headers.accept);
  const body = JSON.stringify(
    asProblem
      ? problemBody(verdict, { detail: limiter.detail })
      : errorBody(verdict, limiter.options.message),
  );
  res.statusCode = verdict.reason === 'unavailable' ? 503 : 429;
  res.setHeader('Content-Type', asProblem ? 'application/problem+json' : 'application/json');
  // A cache that stored a refusal would go on refusing on our behalf.
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Content-Length', Buffer.byteLength(body));
  appendVary(res, 'Accept');
  res.end(req.method === 'HEAD' ? undefined : body);
}

function appendVary(res: ServerResponse, field: string): void {
  const vary = res.getHeader('Vary');
  const fields = (Array.isArray(vary) ? vary : [vary]).flatMap(value =>
    value === undefined ? [] : String(value),
  );
  const known = fields.some(value =>
    value.split(',').some(name => ['*', field.toLowerCase()].includes(name.trim().toLowerCase())),
  );
  if (!known) res.setHeader('Vary', [...fields, field].join(', '));
}
