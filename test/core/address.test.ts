import { BlockList } from 'node:net';
import fc from 'fast-check';
import { canonicalAddress, DEFAULT_IPV6_PREFIX } from '../../src/core/address.js';

describe('IPv4', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['203.0.113.7:0', '203.0.113.7'],
    ['203.0.113.7:65535', '203.0.113.7'],
    ['[203.0.113.7]', '203.0.113.7'],
    ['[203.0.113.7]:8080', '203.0.113.7'],
  ])('%j is %j', (text, expected) => {
    expect(canonicalAddress(text)).toBe(expected);
  });

  test('no prefix cuts it', () => {
    expect(canonicalAddress('203.0.113.7', 32)).toBe('203.0.113.7');
  });
});

describe('IPv4-mapped IPv6 is IPv4 in every spelling', () => {
  test.each([
    '::ffff:203.0.113.7',
    '::FFFF:203.0.113.7',
    '::ffff:cb00:7107',
    '::FFFF:CB00:7107',
    '0:0:0:0:0:ffff:203.0.113.7',
    '0:0:0:0:0:ffff:cb00:7107',
    '0000:0000:0000:0000:0000:ffff:cb00:7107',
    '0000:0000:0000:0000:0000:ffff:203.0.113.7',
    '::0:ffff:203.0.113.7',
    '0::ffff:203.0.113.7',
    '0:0::ffff:cb00:7107',
    '::ffff:203.0.113.7%eth0',
    '[::ffff:203.0.113.7]',
    '[::ffff:203.0.113.7]:443',
    '[::ffff:cb00:7107%3]:443',
  ])('%j', text => {
    for (const prefix of [32, 56, 128]) expect(canonicalAddress(text, prefix)).toBe('203.0.113.7');
  });

  test('the hexadecimal groups may be short, or zero', () => {
    expect(canonicalAddress('::ffff:0:1')).toBe('0.0.0.1');
    expect(canonicalAddress('::ffff:0:0')).toBe('0.0.0.0');
    expect(canonicalAddress('::ffff:1:')).toBeUndefined();
  });

  test.each([
    // A mark in another place, or another mark.
    ['::ffff:0:0:203.0.113.7', '0:0:0:ff00::/56'],
    ['1::ffff:203.0.113.7', '1::/56'],
    ['::fffe:203.0.113.7', '::/56'],
    ['::1:ffff:203.0.113.7', '::/56'],
  ])('%j is not mapped: %j', (text, expected) => {
    expect(canonicalAddress(text)).toBe(expected);
  });
});

describe('S9: what a translator or a tunnel makes of IPv4 counts by that IPv4 address', () => {
  test.each([
    ['NAT64', '64:ff9b::203.0.113.7', '64:ff9b::198.51.100.7'],
    ['NAT64 in hexadecimal', '64:ff9b::cb00:7107', '64:FF9B:0:0::c633:6407'],
    ['NAT64, a prefix for local use', '64:ff9b:1::203.0.113.7', '64:ff9b:1:fffe::198.51.100.7'],
    ['IPv4-translated', '::ffff:0:203.0.113.7', '::ffff:0:c633:6407'],
    ['IPv4-compatible', '::203.0.113.7', '::c633:6407'],
    ['6to4', '2002:cb00:7107::1', '2002:c633:6407:ffff:1:2:3:4'],
    ['Teredo', '2001:0:4136:e378:8000:63bf:34ff:8ef8', '2001:0:0:1:2:3:39cc:9bf8'],
  ])('%s', (_what, one, other) => {
    for (const prefix of [32, 56, 128]) {
      expect(canonicalAddress(one, prefix)).toBe('203.0.113.7');
      expect(canonicalAddress(other, prefix)).toBe('198.51.100.7');
    }
  });

  test('a client chooses nothing of it: everything else that they may choose leads to the same subject', () => {
    const noise = (i: number) => ((i * 2_654_435_761) % 65_536).toString(16);
    const subjects = new Set<string | undefined>();
    for (let i = 0; i < 5000; i += 1) {
      subjects.add(canonicalAddress(`2002:cb00:7107:${noise(i)}:${noise(i + 1)}::${noise(i + 2)}`));
      // Another Teredo server, other flags, another port of the NAT.
      subjects.add(
        canonicalAddress(`2001:0:${noise(i)}:${noise(i + 1)}:${noise(i + 2)}:${noise(i + 3)}:34ff:8ef8`),
      );
    }
    expect([...subjects]).toEqual(['203.0.113.7']);
  });

  test('ISATAP counts by its prefix: whoever owns a /64 may write any IPv4 address into the rest', () => {
    const subjects = Array.from({ length: 5000 }, (_, i) =>
      canonicalAddress(
        `2001:db8:0:aabb:${i % 2 === 0 ? '0' : '200'}:5efe:10.${String(i >> 8)}.${String(i & 255)}.1`,
      ),
    );
    expect(new Set(subjects)).toEqual(new Set(['2001:db8:0:aa00::/56']));
  });

  test.each(['64:ff9b:', ':ffff:', ':2002:', '2002::', ':64:', ':'])(
    'so does an address of a /64 that ends in %j and an IPv4 address',
    middle => {
      expect(canonicalAddress(`2001:db8:0:aabb:${middle}203.0.113.7`)).toBe('2001:db8:0:aa00::/56');
    },
  );

  test.each([
    ['64:ff9b:1:2:3:4:5:6', '64:ff9b:1:2:3:4:5:6/128'],
    // RFC 6052 puts IPv4 behind a prefix of 48 bits around bit 64; the last bits are zero then.
    ['64:ff9b:1:cb00:71:700::', '64:ff9b:1:cb00:71:700::/128'],
    ['64:ff9b:1:cb00::', '64:ff9b:1:cb00::/128'],
  ])('a prefix for local use with IPv4 in another place: whole, %j', (text, expected) => {
    for (const prefix of [32, 56, 128]) expect(canonicalAddress(text, prefix)).toBe(expected);
  });

  test.each([
    ['::', '::/56'],
    ['::1', '::/56'],
    ['::ffff', '::/56'],
    ['64:ff9b::', '64:ff9b::/56'],
    ['64:ff9b::1:203.0.113.7', '64:ff9b::/56'],
    ['64:ff9b:0:1::203.0.113.7', '64:ff9b::/56'],
    ['64:ff9b:2::203.0.113.7', '64:ff9b:2::/56'],
    ['64:ff9c::203.0.113.7', '64:ff9c::/56'],
    ['2001:1::203.0.113.7', '2001:1::/56'],
    ['2003:cb00:7107::1', '2003:cb00:7107::/56'],
    ['::1:0:203.0.113.7', '::/56'],
  ])('%j carries none: %j', (text, expected) => {
    expect(canonicalAddress(text)).toBe(expected);
  });
});

describe('S9: link-local addresses stay whole', () => {
  test.each(['fe80::1', 'fe80::2', 'febf:ffff::1', 'fe80::5efe:203.0.113.7'])('%j', text => {
    for (const prefix of [32, 56, 128]) {
      expect(canonicalAddress(`${text}%eth0`, prefix)).toBe(canonicalAddress(text, 128));
    }
  });

  test.each(['fe7f::1', 'fec0::1', 'fd00::1'])('%j is not one', text => {
    expect(canonicalAddress(text)).toMatch(/\/56$/);
  });
});

describe('IPv6 is cut to its prefix', () => {
  test('56 bits unless another is named', () => {
    expect(DEFAULT_IPV6_PREFIX).toBe(56);
    expect(canonicalAddress('2001:db8:0:aabb:1:2:3:4')).toBe('2001:db8:0:aa00::/56');
  });

  test.each([
    [32, '2001:db8::/32'],
    [33, '2001:db8:8000::/33'],
    [47, '2001:db8:fffe::/47'],
    [48, '2001:db8:ffff::/48'],
    [56, '2001:db8:ffff:ff00::/56'],
    [60, '2001:db8:ffff:fff0::/60'],
    [64, '2001:db8:ffff:ffff::/64'],
    [65, '2001:db8:ffff:ffff:8000::/65'],
    [112, '2001:db8:ffff:ffff:ffff:ffff:ffff:0/112'],
    [127, '2001:db8:ffff:ffff:ffff:ffff:ffff:fffe/127'],
    [128, '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128'],
  ])('to %d bits: %j', (prefix, expected) => {
    expect(canonicalAddress('2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', prefix)).toBe(expected);
  });

  test('P10 a client that rotates the addresses of his /64, or of his /56, stays one', () => {
    const rotating = Array.from({ length: 10_000 }, (_, i) =>
      canonicalAddress(`2001:db8:0:12${(i % 256).toString(16).padStart(2, '0')}::${i.toString(16)}`),
    );
    expect(new Set(rotating)).toEqual(new Set(['2001:db8:0:1200::/56']));
  });

  test('the neighbour in the next /56 is another', () => {
    expect(canonicalAddress('2001:db8:0:12ff::1')).not.toBe(canonicalAddress('2001:db8:0:1300::1'));
  });
});

describe('the spelling is that of RFC 5952', () => {
  test.each([
    ['2001:DB8::1', '2001:db8::1/128', 'lower case'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1/128', 'no leading zeros'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1/128', 'the first of two equal runs'],
    ['2003:0:0:1:0:0:0:1', '2003:0:0:1::1/128', 'the longest run'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1/128', 'a single zero group stays'],
    ['2001:db8::1:1:1:1:1', '2001:db8:0:1:1:1:1:1/128', 'even where it came as ::'],
    ['0:0:0:0:0:0:0:0', '::/128', 'nothing but zeros'],
    ['0:0:0:0:0:0:0:1', '::1/128', 'zeros in front'],
    ['1:0:0:0:0:0:0:0', '1::/128', 'zeros at the end'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0/128', 'one zero at the end'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8/128', 'one zero in front'],
    ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304/128', 'dotted groups become hexadecimal'],
  ])('%j is %j: %s', (text, expected) => {
    expect(canonicalAddress(text, 128)).toBe(expected);
  });
});

describe('zone and port are dropped', () => {
  test.each([
    'fe80::1',
    'fe80::1%eth0',
    'fe80::1%25',
    'fe80::1%en-0.1',
    '[fe80::1]',
    '[fe80::1]:80',
    '[fe80::1%eth0]',
    '[fe80::1%eth0]:65535',
    'FE80:0::0:1%eth0',
  ])('%j', text => {
    expect(canonicalAddress(text, 128)).toBe('fe80::1/128');
  });
});

describe('what is no address is left alone', () => {
  test.each([
    '',
    'alice',
    'alice@example.org',
    'undefined',
    'unknown',
    'cafe',
    '42',
    '1.2',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4 ',
    ' 1.2.3.4',
    '1.2.3.4\n',
    '1.2.3.4:',
    '1.2.3.4:123456',
    '1.2.3.4:http',
    '1.2.3.4/24',
    '[1.2.3.4',
    '1.2.3.4]',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    'g::1',
    '::1%',
    '::1]',
    '[::1',
    '[::1]:',
    '[::1]:123456',
    '[::1]x',
    '::ffff:1.2.3.256',
    '::ffff:1.2.3',
    '::1/128',
    '2001:db8::/56',
    '１.２.３.４',
    '[no address]',
    '[]',
  ])('%j', text => {
    expect(canonicalAddress(text)).toBeUndefined();
  });

  test.each(['1', ':', '1:', '1.', '[', '::ffff:', 'f', '%'])('nor is %j a hundred thousand times', unit => {
    expect(canonicalAddress(unit.repeat(100_000))).toBeUndefined();
  });
});

// An independent reading of addresses: sixteen bytes as one number, and WHATWG URLs, which write them as RFC 5952 asks.
describe('any address, however it is written', () => {
  const ALL = 2n ** 128n - 1n;
  const LOW = 0xffff_ffffn;
  /** 0.0.0.0/16 is nobody; `::1` lies in it. */
  const inLastBits = (value: bigint): bigint | undefined =>
    (value & LOW) >> 16n === 0n ? undefined : value & LOW;
  /** The blocks that are read in their own way, with the IPv4 address in them; `undefined`: like any other. */
  const BLOCKS: readonly (readonly [block: string, read: (value: bigint) => 'whole' | bigint | undefined])[] =
    [
      ['::ffff:0:0/96', value => value & LOW],
      ['::ffff:0:0:0/96', value => value & LOW],
      ['::/96', inLastBits],
      ['64:ff9b::/96', inLastBits],
      ['64:ff9b:1::/48', value => ((value >> 32n) & LOW ? 'whole' : (inLastBits(value) ?? 'whole'))],
      ['2002::/16', value => (value >> 80n) & LOW],
      ['2001::/32', value => ~value & LOW],
      ['fe80::/10', () => 'whole'],
    ];

  function rangeOf(block: string): readonly [start: bigint, length: number] {
    const [net = '', length] = block.split('/');
    const [head = '', tail = ''] = net.split('::');
    const groups = (text: string) => (text === '' ? [] : text.split(':'));
    const missing = 8 - groups(head).length - groups(tail).length;
    const all = [...groups(head), ...Array.from({ length: missing }, () => '0'), ...groups(tail)];
    return [all.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n), Number(length)];
  }

  const bits = fc.oneof(
    fc.bigInt({ min: 0n, max: ALL }),
    // Mostly zeros, so that there is something to compress.
    fc
      .array(fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 0xffff })), {
        minLength: 8,
        maxLength: 8,
      })
      .map(groups => groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)),
    fc.nat(0xffff_ffff).map(v4 => (0xffffn << 32n) | BigInt(v4)),
    // At or near the blocks that mean something.
    fc
      .tuple(
        fc.constantFrom(...BLOCKS.map(([block]) => block)),
        fc.integer({ min: 0, max: 64 }),
        fc.bigInt({ min: 0n, max: ALL }),
        fc.option(fc.nat(127)),
      )
      .map(([block, zeros, noise, flipped]) => {
        const [start, length] = rangeOf(block);
        const inside = (noise & ((1n << BigInt(128 - length)) - 1n)) >> BigInt(Math.min(zeros, 128 - length));
        return (start | inside) ^ (flipped === null ? 0n : 1n << BigInt(flipped));
      }),
  );
  const prefixes = fc.integer({ min: 32, max: 128 });

  const groupsOf = (value: bigint): number[] =>
    Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(16 * (7 - i))) & 0xffffn));
  const dottedOf = (value: bigint): string =>
    [24n, 16n, 8n, 0n].map(shift => String((value >> shift) & 255n)).join('.');
  /** What counts in place of a prefix. */
  const readAs = (value: bigint): 'whole' | bigint | undefined => {
    for (const [block, read] of BLOCKS) {
      const [start, length] = rangeOf(block);
      if (value >> BigInt(128 - length) !== start >> BigInt(128 - length)) continue;
      const meaning = read(value);
      if (meaning !== undefined) return meaning;
    }
    return undefined;
  };

  /** One of the many ways to write an address. */
  const spelling = fc.record({
    upper: fc.boolean(),
    padded: fc.boolean(),
    dotted: fc.boolean(),
    // Which run of zeros, if any, becomes `::`, and where it begins and ends.
    gap: fc.option(fc.tuple(fc.nat(7), fc.integer({ min: 1, max: 8 }))),
    zone: fc.constantFrom('', '%eth0', '%1'),
    brackets: fc.constantFrom('', '[]', '[]:443'),
  });

  function write(
    value: bigint,
    { upper, padded, dotted, gap, zone, brackets }: typeof spelling extends fc.Arbitrary<infer S> ? S : never,
  ): string {
    const groups = groupsOf(value).map(group => group.toString(16).padStart(padded ? 4 : 1, '0'));
    let text: string;
    const tail = dotted ? [...groups.slice(0, 6), dottedOf(value)] : groups;
    if (gap === null) text = tail.join(':');
    else {
      const [from, length] = gap;
      const end = Math.min(dotted ? 6 : 8, from + length);
      const zeros = groupsOf(value)
        .slice(from, end)
        .every(group => group === 0);
      text =
        zeros && end > from
          ? `${tail.slice(0, from).join(':')}::${tail.slice(end).join(':')}`
          : tail.join(':');
    }
    text = `${upper ? text.toUpperCase() : text}${zone}`;
    return brackets === '' ? text : `[${text}${brackets.slice(1)}`;
  }

  function expected(value: bigint, prefix: number): string {
    const meaning = readAs(value);
    if (typeof meaning === 'bigint') return dottedOf(meaning);
    const length = meaning === 'whole' ? 128 : prefix;
    const kept = (value >> BigInt(128 - length)) << BigInt(128 - length);
    const groups = groupsOf(kept).map(group => group.toString(16));
    return `${new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1)}/${length}`;
  }

  test('becomes the same text', () => {
    fc.assert(
      fc.property(bits, prefixes, spelling, (value, prefix, style) => {
        expect(canonicalAddress(write(value, style), prefix)).toBe(expected(value, prefix));
      }),
      { numRuns: 1000 },
    );
  });

  test('lies in the subnet that its text names, and what shares the subnet shares the text', () => {
    fc.assert(
      fc.property(bits, fc.bigInt({ min: 0n, max: ALL }), prefixes, (value, noise, prefix) => {
        const text = canonicalAddress(write(value, PLAIN), prefix);
        fc.pre(readAs(value) === undefined);
        const [net = '', length] = text?.split('/') ?? [];
        const subnet = new BlockList();
        subnet.addSubnet(net, Number(length), 'ipv6');
        expect(subnet.check(write(value, PLAIN), 'ipv6')).toBe(true);
        for (const other of [value ^ (noise >> BigInt(prefix)), value ^ noise]) {
          if (readAs(other) !== undefined) continue;
          const same = canonicalAddress(write(other, PLAIN), prefix) === text;
          expect(same).toBe(subnet.check(write(other, PLAIN), 'ipv6'));
        }
      }),
      { numRuns: 500 },
    );
  });

  const PLAIN = { upper: false, padded: false, dotted: false, gap: null, zone: '', brackets: '' } as const;

  test('and no other text becomes one', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom('0', '1', '2', '25', 'f', 'ffff', ':', ':', '::', '.', '[', ']', '%'),
          maxLength: 50,
        }),
        text => {
          const canonical = canonicalAddress(text);
          if (canonical !== undefined) expect(canonical).toMatch(/^(?:[\d.]+|[\da-f:]+\/(?:56|128))$/);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
