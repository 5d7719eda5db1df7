import fc from 'fast-check'

/** Every code point but the halves of surrogate pairs, which no UTF-8 has. */
const codePoint = fc
  .oneof(
    { arbitrary: fc.nat(0x7f), weight: 1 },
    { arbitrary: fc.nat(0xd7ff), weight: 1 },
    { arbitrary: fc.integer({ min: 0xe000, max: 0x10ffff }), weight: 1 },
  )
  .map((code) => String.fromCodePoint(code))

/**
 * Texts of any code points. The unit "binary" of the library gives the same, but first makes a table of a million characters, in each
 * process of the suite.
 */
export const anyText = (): fc.Arbitrary<string> => fc.string({ unit: codePoint })
