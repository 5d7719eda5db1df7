import { expect, test } from 'bun:test'
import { FactoryError } from '../../../src/programs/factory/factory-error.ts'
import { defaultSchematic, longestSchematic, parseSchematic } from '../../../src/programs/factory/schematic.ts'
// Documents with the form that gopkg.in/yaml.v3 gives them: the id is the hash of its bytes.
import canonical from './canonical.json'

const parsed = (text: string) => parseSchematic(Buffer.from(text))

test.each([
  ['{}', '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'],
  ['customization:', '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'],
  ['customization: {extraKernelArgs: [], meta: [], bootloader: ""}', '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba'],
  ['customization: {extraKernelArgs: [noapic, nolapic]}', '9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c'],
  ['{"customization":{"extraKernelArgs":["noapic","nolapic"]}}', '9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c'],
  ['customization: {meta: [{key: 0xa, value: foo}]}', 'd308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f'],
  ['overlay: {name: rpi_generic, image: siderolabs/sbc-raspberrypi}', 'ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9'],
])('%s has the id of the field', (text, id) => {
  expect(parsed(text).id).toBe(id)
})

test('the canonical form is the one of the field', () => {
  expect(canonical.length).toBeGreaterThan(300)
  const different = canonical.filter(([text = '', yaml]) => parsed(text).yaml !== yaml)
  expect(different).toEqual([])
})

test('the canonical form of a canonical form is itself', () => {
  const unstable = canonical.filter(([, yaml = '']) => !/\|4|<<: 1|1e999|0xf{16}|x: \._5/.test(yaml) && parsed(yaml).yaml !== yaml)
  expect(unstable).toEqual([])
})

test('the order of a list is a part of the id', () => {
  expect(parsed('customization: {extraKernelArgs: [nolapic, noapic]}').id).not.toBe(
    parsed('customization: {extraKernelArgs: [noapic, nolapic]}').id,
  )
  expect(defaultSchematic.yaml).toBe('customization: {}\n')
})

test.each([
  ['', 'the schematic is empty: the default one is "{}"'],
  ['customisation: {}', 'unknown key "customisation", did you mean "customization"?'],
  ['customization: {extraKernelArg: [a]}', 'unknown key "extraKernelArg", did you mean "extraKernelArgs"?'],
  ['customization: {extraKernelArgs: a}', 'expected list, got string "a"'],
  ['customization: {meta: [{key: 256, value: a}]}', '256 is not a whole number from 0 to 255'],
  ['customization: {meta: [{value: a}]}', 'required, but missing'],
  ['customization: {bootloader: lilo}', '"lilo" is not'],
  ['{}\n---\n{}', 'more than 1 documents'],
  ['customization: [', 'line 1'],
  ['overlay: {options: {"a\\nb": 1}}', 'none of them a control character'],
  ['owner: "a\\u2028"', 'line separators of Unicode'],
])('%j is refused in one line', (text, reason) => {
  let error: unknown
  try {
    parsed(text)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(FactoryError)
  expect((error as FactoryError).status).toBe(400)
  expect((error as FactoryError).message).toContain(reason)
  expect((error as FactoryError).message).not.toContain('\n')
})

test('a schematic that is too large is refused before it is parsed', () => {
  expect(() => parsed(`owner: ${'x'.repeat(longestSchematic)}`)).toThrow(`is too large: ${longestSchematic + 7} bytes`)
})
