/** Keys of volumes that cost next to nothing, in tests of what happens around them. */
import { afterAll, beforeAll, spyOn } from 'bun:test'
import nodeCrypto from 'node:crypto'

type Argon2 = (type: string, parameters: { parallelism: number; memory: number; passes: number }, done: () => void) => void

/**
 * Until the end of the file Argon2 makes one pass in the least memory that it can have, at whatever cost it is called with: headers
 * state the usual cost, and open only here. That others open what it derives at full cost is shown in tests/wire/luks2.
 */
export function cheapKeys(): void {
  const runtime = nodeCrypto as unknown as { argon2: Argon2 }
  const { argon2 } = runtime
  let spy: { mockRestore(): void } | undefined
  beforeAll(() => {
    spy = spyOn(runtime, 'argon2').mockImplementation((type, parameters, done) =>
      argon2(type, { ...parameters, passes: 1, memory: 8 * parameters.parallelism }, done),
    )
  })
  afterAll(() => spy?.mockRestore())
}
