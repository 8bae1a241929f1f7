import { createHash } from 'node:crypto';
import type { Reply } from '../../http/reply.js';
import page from './page.html';

/** How the page gets in: with a key that the operator types, or with what the browser sends along anyway (`authorize`). */
export type Entrance = 'key' | 'session';

/**
 * The operators' page: one static document, with no data in it and nothing loaded from elsewhere. Its policy admits exactly
 * its own style and script, by their hashes.
 */
export function operatorsPage(entrance: Entrance): Reply {
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf('script')}`,
    `style-src ${hashOf('style')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return {
    status: 200,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy.join('; '),
      'Cross-Origin-Opener-Policy': 'same-origin',
    },
    body: page.replace('data-entrance="key"', `data-entrance="${entrance}"`),
  };
}

/** A page of one sentence and nothing else: no style, no script, no word of what lies behind it. */
export function sentencePage(status: number, sentence: string): Reply {
  return {
    status,
    headers: { 'Content-Type': 'text/html; charset=utf-8' },
    body:
      '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">' +
      `<meta name="color-scheme" content="light dark"><title>Limits</title><main><h1>${sentence}</h1></main></html>`,
  };
}

function hashOf(element: 'script' | 'style'): string {
  const [, text = ''] = new RegExp(`<${element}>(.*?)</${element}>`, 's').exec(page) ?? [];
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
