import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import {
  hashSubject,
  isHashedSubject,
  NO_ADDRESS,
  subjectHash,
  subjectOfHash,
} from '../../src/core/subject.js';
import type { SubjectKey } from '../../src/core/subject.js';

describe('subjectHash: what a shell finds', () => {
  // Each from `printf %s '<text>' | sha256sum`.
  test.each<[key: SubjectKey, text: string, hash: string]>([
    ['alice', 'alice', '2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90'],
    ['é', 'é', '4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c'],
    ['203.0.113.7', '203.0.113.7', 'fec52565aa0cf18f57d7cf5b3ac728503b8992d2d6f7d46da1d1201090902b02'],
    [
      '2001:db8:0:aabb::1',
      '2001:db8:0:aa00::/56',
      'ecea23be5c3dc737e385958f9a205038d3d77d3b04339953831a2d62acfe9371',
    ],
    [42, '42', '73475cb40a568e8da8a045ced110137e159f890ac4da883b6b17dc651b3a8049'],
    [
      ['a@b.c', '203.0.113.7'],
      '["a@b.c","203.0.113.7"]',
      '7163a5858b256fc22146f81b241e24b4c4cd0b4b597d418dd48f5592387ff43c',
    ],
    [[1, 2], '["1","2"]', 'cc3f2a1ffd63c4db19e0114b93a94b774e4a2d07a2a5ec5b193303ac1387d633'],
    ['[1]', '["[1]"]', '2d9225aba2fae476d95cebd9c21865999cdaaa398b9d8da937fcf436bd02155d'],
    ['\ud800', '["\\ud800"]', '69119aac5ce42bc93c1667db0454297ffaa342c431efa2dfdf48af101c035106'],
    [NO_ADDRESS, '["[no address]"]', '3835907b410c502c4b114578bddb2e2df62586d27ab11cb4602f6975b9a6d085'],
  ])('%j is the hash of %s', (key, text, hash) => {
    expect(subjectHash(key)).toBe(hash);
    expect(createHash('sha256').update(text).digest('hex')).toBe(hash);
  });

  test('with a secret: what `openssl dgst -sha256 -hmac k3y` finds', () => {
    expect(subjectHash('alice', 'k3y')).toBe(
      '8e8dd8ec0d188816cd7a67ed31e984f15010cb5c29623f39e074b77aa16304df',
    );
    expect(subjectHash(['a', 'b'], 'k3y')).toBe(
      createHmac('sha256', 'k3y').update('["a","b"]').digest('hex'),
    );
    expect(subjectHash('alice', 'other')).not.toBe(subjectHash('alice', 'k3y'));
  });

  test('a subject is hashed whole, however long', () => {
    // python3 -c "print('a'*100000,end='')" | sha256sum
    expect(subjectHash('a'.repeat(100_000))).toBe(
      '6d1cf22d7cc09b085dfc25ee1a1f3ae0265804c607bc2074ad253bcc82fd81ee',
    );
    expect(subjectHash(`${'a'.repeat(100_000)}b`)).not.toBe(subjectHash(`${'a'.repeat(100_000)}c`));
  });

  test('a list of one is that one', () => {
    expect(subjectHash(['alice'])).toBe(subjectHash('alice'));
  });
});

describe('numbers count as their decimal text', () => {
  test.each<[key: number | bigint, text: string]>([
    [0, '0'],
    [-0, '0'],
    [-7, '-7'],
    [1.5, '1.5'],
    [2 ** 53, '9007199254740992'],
    [9_007_199_254_740_993n, '9007199254740993'],
    [1e21, '1000000000000000000000'],
    [1e23, '99999999999999991611392'],
    [-(10n ** 30n), '-1000000000000000000000000000000'],
  ])('%p is %j', (key, text) => {
    expect(subjectHash(key)).toBe(subjectHash(text));
    expect(subjectHash(['user', key])).toBe(subjectHash(['user', text]));
  });
});

describe('a part that is an IP address counts in one spelling', () => {
  test.each(['::ffff:203.0.113.7', '::ffff:cb00:7107', '203.0.113.7:4711', '[::FFFF:CB00:7107]:80'])(
    '%j alone and beside an e-mail',
    address => {
      expect(subjectHash(address)).toBe(subjectHash('203.0.113.7'));
      expect(subjectHash(['a@b.c', address])).toBe(subjectHash(['a@b.c', '203.0.113.7']));
    },
  );

  test('P10 [email, req.ip] does not let a /64 rotate', () => {
    const rotating = Array.from({ length: 100 }, (_, i) =>
      subjectHash(['a@b.c', `2001:db8:0:aa01::${i.toString(16)}`]),
    );
    expect(new Set(rotating).size).toBe(1);
  });

  test('the prefix can be chosen', () => {
    const [one, other] = ['2001:db8:0:aa01::1', '2001:db8:0:aa02::1'];
    expect(subjectHash(one)).toBe(subjectHash(other));
    expect(subjectHash(one, undefined, 64)).not.toBe(subjectHash(other, undefined, 64));
    expect(hashSubject(one, { ipv6Prefix: 64 }).hash).toBe(subjectHash(one, undefined, 64));
  });

  test('what is canonical already stays as it is', () => {
    for (const address of ['203.0.113.7', '2001:db8:0:aa00::/56']) {
      expect(subjectHash(address)).toBe(createHash('sha256').update(address).digest('hex'));
    }
    expect(subjectHash('2001:db8:0:aa00::/56')).toBe(subjectHash('2001:db8:0:aaff::1'));
  });
});

describe('no two different keys meet', () => {
  test.each<[string, SubjectKey, SubjectKey]>([
    ['P11 parts that run together', ['1.1.1.1', '1/x'], ['1.1.1.11', '/x']],
    ['parts and their join', ['a', 'b'], 'a,b'],
    ['parts and their JSON', ['a', 'b'], '["a","b"]'],
    ['one part and the JSON of it', '["a"]', '["["a"]"]'],
    ['a quote in a part', ['a"', 'b'], ['a', '"b']],
    ['a backslash in a part', ['a\\', 'b'], ['a', '\\b']],
    ['order', ['a', 'b'], ['b', 'a']],
    ['a part more', ['a', 'a'], ['a', 'a', 'a']],
    ['lone surrogates', '\ud800', '\ud801'],
    ['a lone surrogate and what UTF-8 makes of it', '\ud800', '\ufffd'],
    ['a lone surrogate and its escape', '\ud800', '\\ud800'],
    ['lone surrogates in a list', ['a', '\udc00'], ['a', '\udc01']],
    ['composed and decomposed', 'é', 'e\u0301'],
    ['case', 'Alice', 'alice'],
    ['a space', 'alice', 'alice '],
    ['NUL', 'a', 'a\0'],
    ['the subject of no address and a user of that name', NO_ADDRESS, 'no address'],
  ])('%s', (_case, a, b) => {
    expect(subjectHash(a)).not.toBe(subjectHash(b));
  });

  const part = fc.oneof(
    fc.string({
      unit: fc.constantFrom('a', 'b', '[', ']', '"', ',', '\\', ' ', '1', '\ud800', '\udc00'),
      minLength: 1,
      maxLength: 4,
    }),
    fc.integer({ min: -3, max: 3 }),
    fc.bigInt({ min: -3n, max: 3n }),
  );
  const key = fc.oneof(part, fc.array(part, { minLength: 1, maxLength: 3 }));
  /** What a key says, in a form that nobody confuses: the code units of each part. */
  const meaning = (value: SubjectKey): string =>
    [value]
      .flat()
      .map(item => Buffer.from(String(item), 'utf16le').toString('hex'))
      .join(' ');

  test('two keys have the same hash exactly when they have the same parts', () => {
    const seen = new Map<string, string>();
    fc.assert(
      fc.property(fc.array(key, { minLength: 100, maxLength: 100 }), keys => {
        for (const value of keys) {
          const hash = subjectHash(value);
          const said = meaning(value);
          expect(seen.get(hash) ?? said).toBe(said);
          seen.set(hash, said);
        }
      }),
      { numRuns: 100 },
    );
    expect(new Set(seen.values()).size).toBe(seen.size);
  });
});

describe('what is no key', () => {
  class Secret {
    readonly value = 'hunter2';
  }
  const BAD: [string, unknown][] = [
    ['undefined', undefined],
    ['null', null],
    ['an empty string', ''],
    ['NaN', NaN],
    ['Infinity', Infinity],
    ['-Infinity', -Infinity],
    ['true', true],
    ['an object', { id: 1 }],
    ['a symbol', Symbol('hunter2')],
    ['a function', () => 'hunter2'],
    ['an instance', new Secret()],
    ['a boxed string', new String('hunter2')],
    ['a date', new Date(0)],
    ['bytes', Buffer.from('hunter2')],
    ['a promise', Promise.resolve('hunter2')],
    ['an empty list', []],
    ['a list with a hole', [undefined]],
    ['an empty part', ['hunter2', '']],
    ['an undefined part', ['hunter2', undefined]],
    ['a list in a list', [['hunter2']]],
    ['an object part', ['hunter2', { id: 'hunter2' }]],
  ];

  test.each(BAD)('P19 %s is an error that says so, and never a shared subject', (_case, key) => {
    const error: unknown = (() => {
      try {
        return hashSubject(key, {});
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'ERR_LIMITKEEPER_SUBJECT', option: 'keyFn' });
    // The key may be half of a password or an address: no message repeats it.
    expect(String(error)).not.toMatch(/hunter2/);
    expect(() => subjectHash(key as SubjectKey)).toThrow(TypeError);
  });
});

describe('a subject as stores see it', () => {
  test('is its hash, and the hash of each part for the index of blocks', () => {
    const subject = hashSubject(['a@b.c', '::ffff:203.0.113.7'], {});
    expect(subject.hash).toBe(subjectHash(['a@b.c', '203.0.113.7']));
    expect(subject.partHashes).toEqual([subjectHash('a@b.c'), subjectHash('203.0.113.7')]);
  });

  test('under a secret, its parts as well', () => {
    const subject = hashSubject(['a@b.c', 7], { secret: 'k3y' });
    expect(subject.hash).toBe(subjectHash(['a@b.c', 7], 'k3y'));
    expect(subject.partHashes).toEqual([subjectHash('a@b.c', 'k3y'), subjectHash(7, 'k3y')]);
  });

  test('one part is its own index entry', () => {
    const subject = hashSubject('alice', {});
    expect(subject.partHashes).toEqual([subject.hash]);
  });

  test('shows the plain key to nobody who prints or sends it', async () => {
    const { inspect } = await import('node:util');
    const subject = hashSubject(['hunter2', 'a@b.c'], { secret: 'k3y' });
    const shown = [
      JSON.stringify(subject),
      inspect(subject, { showHidden: true, depth: null }),
      String(Object.values(subject)),
    ].join();
    expect(shown).not.toMatch(/hunter2|a@b\.c|k3y/);
    expect(shown).toContain(subject.hash);
  });

  test('may be known by its hash only: then it has no parts', () => {
    const hash = subjectHash('alice');
    const subject = subjectOfHash(hash);
    expect([subject.hash, subject.partHashes]).toEqual([hash, []]);
  });

  test('is told from a key, also one of another copy of the library', () => {
    let copy = subjectOfHash;
    jest.isolateModules(() => {
      // eslint-disable-next-line @typescript-eslint/no-require-imports
      ({ subjectOfHash: copy } = require('../../src/core/subject.js') as {
        subjectOfHash: typeof subjectOfHash;
      });
    });
    expect(copy).not.toBe(subjectOfHash);
    expect(isHashedSubject(copy('00'))).toBe(true);
    for (const key of ['alice', 42, ['a'], { hash: 'x', partHashes: [] }, null, undefined]) {
      expect(isHashedSubject(key)).toBe(false);
    }
  });
});
