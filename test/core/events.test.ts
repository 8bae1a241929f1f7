import { Events } from '../../src/core/events.js';
import type { EventName, Listener } from '../../src/core/events.js';

const off = () => {};
const recovered = (events: Events) => {
  events.emit('recovered', {});
};

test('every listener hears an event, in the order in which they came', () => {
  const events = new Events();
  const heard: string[] = [];
  events.on('recovered', () => heard.push('first'));
  events.on('recovered', () => heard.push('second'));
  events.on('degraded', () => heard.push('another event'));
  recovered(events);
  expect(heard).toEqual(['first', 'second']);
});

test('off() ends that one subscription, and may be called again', () => {
  const events = new Events();
  const heard: string[] = [];
  const end = events.on('recovered', () => heard.push('ended'));
  events.on('recovered', () => heard.push('stays'));
  end();
  end();
  recovered(events);
  expect(heard).toEqual(['stays']);
});

test('the same function may listen twice: each off() ends its own', () => {
  const events = new Events();
  let heard = 0;
  const listener = () => {
    heard += 1;
  };
  const first = events.on('recovered', listener);
  const second = events.on('recovered', listener);
  recovered(events);
  expect(heard).toBe(2);
  first();
  first();
  recovered(events);
  expect(heard).toBe(3);
  second();
  recovered(events);
  expect(heard).toBe(3);
});

test('who was ended by an earlier listener of the same event hears it no more', () => {
  const events = new Events();
  const heard: string[] = [];
  let endSecond = off;
  events.on('recovered', () => {
    heard.push('first');
    endSecond();
  });
  endSecond = events.on('recovered', () => heard.push('second'));
  recovered(events);
  expect(heard).toEqual(['first']);
});

test('who begins to listen during an event hears the next one', () => {
  const events = new Events();
  let heard = 0;
  events.on('recovered', () => {
    events.on('recovered', () => {
      heard += 1;
    });
  });
  recovered(events);
  expect(heard).toBe(0);
  recovered(events);
  expect(heard).toBe(1);
});

test('nobody listens: has() says so, before the first and after the last', () => {
  const events = new Events();
  expect(events.has('allowed')).toBe(false);
  const one = events.on('allowed', off);
  const two = events.on('allowed', off);
  one();
  expect(events.has('allowed')).toBe(true);
  two();
  expect(events.has('allowed')).toBe(false);
  events.on('allowed', off);
  // An off() of the past does not end what began since.
  two();
  expect(events.has('allowed')).toBe(true);
});

describe('a listener that fails', () => {
  test('by a throw is reported as error; the others hear the event all the same', () => {
    const events = new Events();
    const errors: unknown[] = [];
    const heard: string[] = [];
    events.on('error', event => errors.push(event));
    events.on('recovered', () => {
      throw new Error('broken listener');
    });
    events.on('recovered', () => heard.push('after it'));
    recovered(events);
    expect(heard).toEqual(['after it']);
    expect(errors).toEqual([{ error: new Error('broken listener'), source: 'listener' }]);
  });

  test('by a rejection is reported, too, and never crashes the process', async () => {
    const events = new Events();
    const errors: unknown[] = [];
    const unheard: unknown[] = [];
    const note = (reason: unknown) => unheard.push(reason);
    process.on('unhandledRejection', note);
    events.on('error', event => errors.push(event));
    events.on('recovered', async () => {
      throw new Error('broken async listener');
    });
    recovered(events);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(errors).toEqual([{ error: new Error('broken async listener'), source: 'listener' }]);
    expect(unheard).toEqual([]);
  });

  test('and listens to error itself, or has nobody to tell: nothing happens', async () => {
    const events = new Events();
    const unheard: unknown[] = [];
    const note = (reason: unknown) => unheard.push(reason);
    process.on('unhandledRejection', note);
    let calls = 0;
    events.on('error', () => {
      calls += 1;
      throw new Error('broken error listener');
    });
    events.on('error', async () => {
      calls += 1;
      throw new Error('broken async error listener');
    });
    events.emit('error', { error: new Error('first'), source: 'outcome' });
    const silent = new Events();
    silent.on('recovered', () => {
      throw new Error('nobody hears this');
    });
    recovered(silent);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(calls).toBe(2);
    expect(unheard).toEqual([]);
  });
});

describe('what would never be heard is refused', () => {
  test.each(['refuse', 'Refused', '', 'constructor', '__proto__', undefined, 5])(
    'an event named %p',
    name => {
      expect(() => new Events().on(name as EventName, off)).toThrow(
        expect.objectContaining({
          name: 'TypeError',
          code: 'ERR_LIMITKEEPER_OPTION_TYPE',
          message: expect.stringContaining("'shadow-refused'"),
        }),
      );
    },
  );

  test.each([undefined, null, 'log', {}])('a listener that is %p', listener => {
    expect(() => new Events().on('refused', listener as Listener<'refused'>)).toThrow(
      expect.objectContaining({ name: 'TypeError', code: 'ERR_LIMITKEEPER_OPTION_TYPE' }),
    );
  });
});
