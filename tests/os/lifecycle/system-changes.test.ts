import { expect, test } from 'bun:test'
import { SystemChanges } from '../../../src/os/lifecycle/system-changes.ts'

test('the boot loader is used by one at a time, in order, also after one failed', async () => {
  const changes = new SystemChanges()
  const steps: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = changes.inTurn(async () => {
    steps.push('first')
    await gate.promise
    steps.push('first done')
    throw new Error('no space')
  })
  const second = changes.inTurn(async () => steps.push('second'))
  await Bun.sleep(0)
  expect(steps).toEqual(['first'])
  gate.resolve()
  await expect(first).rejects.toThrow('no space')
  await second
  expect(steps).toEqual(['first', 'first done', 'second'])
})

test('one release is written at a time on a machine, and other machines are not concerned', async () => {
  const [one, other] = [new SystemChanges(), new SystemChanges()]
  const gate = Promise.withResolvers<void>()
  const refused = (running: string) => new Error(`${running} is in progress`)
  const upgrade = one.exclusively('upgrade', () => gate.promise, refused)
  expect([one.writing, other.writing]).toEqual(['upgrade', undefined])
  await expect(one.exclusively('installation', async () => {}, refused)).rejects.toThrow('upgrade is in progress')
  await other.exclusively('installation', async () => {}, refused)
  gate.resolve()
  await upgrade
  expect(one.writing).toBeUndefined()
})
