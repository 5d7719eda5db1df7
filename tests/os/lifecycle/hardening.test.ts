import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { enforceHardening } from '../../../src/os/lifecycle/start/hardening.ts'

const start = (commandLine: string) => () =>
  enforceHardening({ kernel: { files: { readText: () => commandLine } } } as never).run({
    log: silent,
    signal: new AbortController().signal,
  })

test('a kernel with hardening parameters boots', () => {
  expect(start('console=ttyS0 slab_nomerge pti=on')).not.toThrow()
  expect(start('pti=off slab_nomerge= pti=on')).not.toThrow()
})

test('a kernel without hardening parameters is refused with the missing ones', () => {
  expect(start('slab_nomerge pti=off')).toThrow('kernel parameter "pti=on" is missing: the machine starts only with it on')
  expect(start('pti=on pti=auto slab_nomerge')).toThrow('"pti=on"')
  expect(start('console=ttyS0')).toThrow('kernel parameter "slab_nomerge" and "pti=on" are missing: the machine starts only with them on')
})
