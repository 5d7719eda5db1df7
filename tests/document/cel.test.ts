import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CelEnvironment } from '../../src/document/cel/environment.ts'
import { CelError } from '../../src/document/cel/error.ts'

const environment = new CelEnvironment({
  variables: {
    disk: { size: 'uint', model: 'string', serial: 'string', rotational: 'bool', symlinks: 'list<string>', wwn: 'bytes', load: 'double' },
    speed: 'int',
    system_disk: 'bool',
  },
  constants: { GB: 10n ** 9n, GiB: 2n ** 30n, EiB: 2n ** 60n },
  functions: { 'hex(bytes): string': (bytes: Uint8Array) => Buffer.from(bytes).toString('hex') },
})
const disk = { size: 500e9, model: 'QEMU HARDDISK', symlinks: ['/dev/disk/by-id/a', '/dev/disk/by-path/b'], wwn: new Uint8Array([1, 255]) }
const values = { disk, speed: -1, system_disk: false }
const evaluate = (text: string) => environment.condition(text)(values)
const refusal = (text: string): string => {
  try {
    environment.condition(text)
  } catch (error) {
    if (error instanceof CelError) return error.message
    throw error
  }
  return 'accepted'
}

describe('an expression', () => {
  for (const [text, expected] of [
    ['disk.size > 100u * GB && !system_disk', true],
    ['disk.size >= 500u * GB && disk.size < 1u * EiB', true],
    ['disk.size / GB == 500u', true],
    ['double(disk.size) / double(GiB) > 465.6', true],
    ['1.0 / 2.0 == 0.5 && 7 / 2 == 3', true],
    ['disk.load == 0.0', true],
    ['has(disk.model) && !has(disk.serial) && !has(disk.rotational) && has(disk.symlinks) && has(disk.wwn)', true],
    ['disk.serial == "" && !disk.rotational', true],
    ['disk.symlinks.exists(link, link.startsWith("/dev/disk/by-id/"))', true],
    ['disk.symlinks.all(link, link.endsWith("a"))', false],
    ['disk.symlinks.exists_one(link, link.contains("by-path"))', true],
    ['disk.symlinks.filter(link, link.endsWith("b")).map(link, size(link)) == [19]', true],
    ['"/dev/disk/by-id/a" in disk.symlinks', true],
    ['disk.model.matches(r"^QEMU\\s") && matches(disk.model, "DISK$")', true],
    ['hex(disk.wwn) == "01ff" && disk.wwn == b"\\x01\\xff"', true],
    ['int(disk.size) + speed == 499999999999', true],
    ['speed in [1, -1] ? true : false', true],
    ['{"a": 1}["a"] == 1 && [1, 2][1] == 2', true],
    ['[disk.symlinks[7]] == [] || true', true],
    ['[{"serial": 1}].exists(disk, has(disk.serial))', true],
  ] as const)
    test(`${text} is ${expected}`, () => {
      expect(evaluate(text)).toBe(expected)
    })

  for (const [text, reason] of [
    ['disk.size > 10 * GB', 'character 13: no such overload: int * uint'],
    ['disk.size > 10', 'character 1: no such overload: uint > int'],
    ['disk.size == 10', 'character 1: no such overload: uint == int'],
    ['disk.symlinks.exists(link, link.size() > 1u)', 'character 28: no such overload: int > uint'],
    ['!disk.rotational || disk.size > 1.5', 'character 21: no such overload: uint > double'],
    ['disk.sise > 5u', 'character 6: no such key: sise'],
    ['has(disk.sise)', 'character 10: no such key: sise'],
    ['drive.size > 5u', 'character 1: unknown variable: drive'],
    ['disk.constructor == ""', 'character 6: no such key: constructor'],
    ['constructor', 'character 1: unknown variable: constructor'],
    ['disk.model.matches(1)', "character 1: found no matching overload for 'string.matches(int)'"],
    ['disk.model.matches("a(")', 'character 20: error parsing regexp: missing closing ): `a(`'],
    ['matches(disk.model, "(a)\\\\1")', 'character 21: error parsing regexp: invalid escape sequence: `\\1`'],
    ['disk.model.split(" ").size() > 0', 'character 1: there is no function "split"'],
    ['set(disk.model)', 'character 1: there is no function "set"'],
    ['disk.model.matchesRe2("a")', 'character 1: there is no function "matchesRe2"'],
    ['disk["model"] == "x"', 'character 1: fields of "disk" are named after a dot'],
    ['cel.bind(x, 1, x) == 1', 'character 1: there is no function "bind"'],
    ['disk.model', 'the expression is of type string, not bool'],
    ['dyn(true)', 'the expression is of type dyn, not bool'],
    ['disk.model ==', 'character 14: unexpected token: the end'],
    ['(speed', 'character 7: expected ")", got the end'],
    ['speed # 1', 'character 7: unexpected character: #'],
    ['"a', 'character 1: unterminated string'],
  ] as const)
    test(`${text} is refused`, () => {
      expect(refusal(text)).toBe(reason)
    })

  test('that fails for a disk gives the reason', () => {
    expect(() => evaluate('disk.symlinks[7] == "x"')).toThrow('index 7 >= size 2')
    expect(() => evaluate('disk.size - 1u * EiB > 0u')).toThrow('unsigned integer overflow')
    expect(() => evaluate('speed / 0 == 1')).toThrow('division by zero')
    expect(() => environment.condition('system_disk')({ disk })).toThrow('character 1: unknown variable: system_disk')
    expect(() => environment.condition('disk.model.matches(disk.serial)')({ disk: { ...disk, serial: '(' } })).toThrow('missing closing )')
  })
})

describe('the cost of an expression', () => {
  const times = (count: number, text: string) => new Array(count).fill(text)
  const nested = (levels: number, body: string) => `${times(levels, 'disk.symlinks.exists(a, ').join('')}${body}${')'.repeat(levels)}`

  test('is bounded by its length, depth and number of parts', () => {
    expect(refusal(`${' '.repeat(5000)}true`)).toBe('an expression of 5004 characters is longer than 4096')
    expect(refusal('('.repeat(500))).toContain('exceeded maxDepth')
    expect(refusal('!'.repeat(4000))).not.toBe('accepted')
    expect(refusal(`${'!'.repeat(4000)}true`)).toContain('exceeded maxAstNodes')
    expect(refusal(times(1500, '1').join('+'))).toContain('exceeded maxAstNodes')
  })

  test('counts loops within loops', () => {
    expect(refusal(nested(2, 'a.startsWith("x")'))).toBe('accepted')
    expect(refusal(nested(4, 'a == "x"'))).toMatch(/^the expression takes up to \S+ steps, 5000000 are allowed$/)
    expect(refusal(nested(12, 'false'))).toContain('steps')
  })

  test('counts strings and lists that grow', () => {
    const doubled = (levels: number, seed: string) =>
      `${times(levels, '').reduce((list) => `${list}.map(a, a + a)`, `[${seed}]`)}.size() == 1`
    expect(refusal(doubled(10, 'disk.model'))).toBe('accepted')
    expect(refusal(doubled(40, 'disk.model'))).toContain('steps')
    expect(refusal(doubled(40, 'disk.symlinks'))).toContain('steps')
  })

  test('counts patterns that are not known before', () => {
    expect(refusal('disk.symlinks.exists(a, a.matches("(x+x+)+y"))')).toBe('accepted')
    expect(refusal('disk.symlinks.exists(a, a.matches(disk.model))')).toContain('steps')
  })

  test('is bounded for the values themselves too', () => {
    const condition = environment.condition('disk.symlinks.exists(a, disk.symlinks.exists(b, a == b + "x"))')
    expect(condition(values)).toBe(false)
    const many = Array.from({ length: 3000 }, (_, index) => `/dev/disk/by-id/${index}`)
    expect(() => condition({ disk: { ...disk, symlinks: many } })).toThrow('steps')
  })

  test('of a pattern is linear in the string', () => {
    const text = `${'x'.repeat(20_000)}!`
    expect(environment.condition('disk.model.matches("^(x+x+)+y$")')({ disk: { ...disk, model: text } })).toBe(false)
  })

  test('of any characters terminates: they parse or are refused', () => {
    const parts = ['a', '1', '"', '(', ')', '[', ']', '.', ',', '?', ':', '!', '-', '&&', 'in ', 'disk', 'has(', '.map(', '{', '}', "r'"]
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...parts) })), (text) => {
        try {
          evaluate(text)
        } catch (error) {
          expect(error).toBeInstanceOf(CelError)
        }
      }),
    )
  })
})
