import express from 'express';
import { errorBody, prefersProblem, problemBody } from '../../src/express/problem.js';
import { hashSubject } from '../../src/core/subject.js';
import { decided, degraded, reading, refusal } from '../support/decisions.js';

describe('the problem form', () => {
  test('a refusal is quota-exceeded, with the scope that refused', () => {
    expect(problemBody(decided([refusal()]))).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: expect.any(String),
      status: 429,
      'violated-policies': ['api.ip'],
    });
  });

  test('every enforced rule that refused is named; others and shadow rules are not', () => {
    const decision = decided([
      refusal({ scope: 'minute' }),
      reading({ scope: 'hour' }),
      refusal({ scope: 'rehearsal', shadow: true }),
      refusal({ scope: 'day', reason: 'blocked' }),
    ]);
    expect(problemBody(decision)['violated-policies']).toEqual(['minute', 'day']);
  });

  test('a decision that lost its readings on the way still names its scope', () => {
    expect(problemBody({ ...decided([refusal()]), readings: [] })['violated-policies']).toEqual(['api.ip']);
  });

  test('detail is the message for people, and absent without one', () => {
    const decision = decided([refusal()]);
    expect(problemBody(decision, { detail: 'Please wait.' }).detail).toBe('Please wait.');
    expect(problemBody(decision)).not.toHaveProperty('detail');
    expect(problemBody(decision, { detail: undefined })).not.toHaveProperty('detail');
  });

  test('a failed store is temporary-reduced-capacity, 503, and violates no policy', () => {
    expect(problemBody(degraded('closed'), { detail: 'Back soon.' })).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: expect.any(String),
      status: 503,
      detail: 'Back soon.',
    });
  });

  test('neither form says whom a rule counts', () => {
    const { hash } = hashSubject('alice@example.org', {});
    const told = JSON.stringify([problemBody(decided([refusal()])), errorBody(decided([refusal()]))]);
    expect(told).not.toMatch(/alice/);
    expect(told).not.toContain(hash);
  });
});

describe('the plain form', () => {
  test('a refusal', () => {
    expect(JSON.stringify(errorBody(decided([refusal()])))).toBe('{"error":"rate_limit_exceeded"}');
  });

  test('a failed store', () => {
    expect(JSON.stringify(errorBody(degraded('closed')))).toBe('{"error":"rate_limiter_unavailable"}');
  });
});

describe('which form Accept asks for', () => {
  const PLAIN: (string | undefined)[] = [
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'text/html',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'application/json, text/plain, */*',
    'application/json, application/problem+json',
    'application/problem+json;q=0.5, application/json',
    'application/problem+json;q=0.5, */*',
    'application/problem+json;q=0.899, application/*;q=0.9',
    'application/problem+json;q=0',
    'application/problem+json;q=0, */*',
    'application/problem+json;q=0, application/json;q=0',
    'application/problem+xml',
    'application/problem+jsonx',
    'xapplication/problem+json',
    'application/problem',
    // Of a form that we do not have, or not to be read at all.
    'application/problem+json;version=2',
    'application/problem+json;q=high',
    'application/problem+json;q=1.5',
    'application/problem+json;q=-1',
    'text/x;note="application/problem+json, application/problem+json"',
    'text/x;note="never closed, application/problem+json',
    'text/x;note="an escaped \\" quote, application/problem+json"',
    'text/x;note="a \\", application/problem+json, \\"b"',
    ',;,;=,q=1',
  ];
  const PROBLEM: string[] = [
    'application/problem+json',
    'APPLICATION/Problem+JSON',
    '  application/problem+json  ',
    'application/problem+json; charset=utf-8',
    'application/problem+json;charset="UTF-8";q=0.8',
    'application/problem+json;q=1.000, application/json;q=0.999',
    'application/problem+json ; q=0.2, application/json ; q=0.1',
    'application/json;q=0.5, application/problem+json',
    'application/problem+json, application/json',
    'application/problem+json, */*',
    '*/*, application/problem+json',
    'application/*;q=0.1, application/problem+json;q=0.2',
    'application/problem+json;q=0.001',
    'application/json;q=0, */*',
    'text/html, application/problem+json;q=0.9',
    'text/x;note="a, b", application/problem+json',
    'application/problem+json;q=1;ext="x,y", application/json;q=0.5',
    ', ,application/problem+json,',
  ];

  test.each(PLAIN)('%j: plain', accept => {
    expect(prefersProblem(accept)).toBe(false);
  });

  test.each(PROBLEM)('%j: a problem', accept => {
    expect(prefersProblem(accept)).toBe(true);
  });

  test('where both answer, Express decides in the same way', () => {
    const TYPES = ['application/json', 'application/problem+json'];
    const WEIGHTS = ['', ';q=0', ';q=0.5', ';q=1'];
    const NAMES = ['*/*', 'application/*', 'application/json', 'application/problem+json'];
    let compared = 0;
    for (const a of NAMES.flatMap(name => WEIGHTS.map(weight => name + weight))) {
      for (const b of NAMES.flatMap(name => WEIGHTS.map(weight => name + weight))) {
        const accept = `${a}, ${b}`;
        // The same range twice is no request that anybody sends; who wins there is left open.
        if (a.split(';')[0] === b.split(';')[0]) continue;
        const req = Object.assign(Object.create(express.request), { headers: { accept } }) as express.Request;
        expect([accept, prefersProblem(accept)]).toEqual([accept, req.accepts(TYPES) === TYPES[1]]);
        compared += 1;
      }
    }
    expect(compared).toBe(192);
  });

  test('a header as long as a server accepts is read in one pass', () => {
    expect(prefersProblem(`${'text/x;a="\\"",'.repeat(1100)}application/problem+json`)).toBe(true);
    expect(prefersProblem('application/problem+json;a='.padEnd(16_000, '"'))).toBe(false);
  });
});
