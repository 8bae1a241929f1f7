import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Decision } from '../core/decision.js';
import { errorBody, prefersProblem, problemBody } from './problem.js';

/**
 * Answers a refused request: 429, or 503 where the store failed and the limiter fails closed.
 *
 * @param message for people. In the problem form it is the `detail`, unless that is something else.
 */
export function refuse(
  req: IncomingMessage,
  res: ServerResponse,
  decision: Decision,
  message: string | undefined,
  detail = message,
): void {
  if (res.headersSent || res.writableEnded) return;
  const asProblem = prefersProblem(req.headers.accept);
  const body = JSON.stringify(asProblem ? problemBody(decision, { detail }) : errorBody(decision, message));
  res.statusCode = decision.reason === 'unavailable' ? 503 : 429;
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
