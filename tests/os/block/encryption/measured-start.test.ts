import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { hash } from 'node:crypto'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { measureStart } from '../../../../src/os/block/controllers/pcr-status.ts'
import { TpmWindow } from '../../../../src/os/block/encryption/tpm/tpm-window.ts'
import { VolumeConfig } from '../../../../src/os/block/resources/volume-config.ts'
import { VolumeStatus } from '../../../../src/os/block/resources/volume-status.ts'
import { PCRStatus } from '../../../../src/os/hardware/resources/pcr-status.ts'
import { Tpm } from '../../../../src/wire/tpm2/tpm.ts'
import { noSwtpm, type Swtpm, startSwtpm } from '../../../support/swtpm.ts'

const volumes = ['STATE', 'EPHEMERAL', 'u-data']

function machine(window: TpmWindow) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(measureStart(window))
  for (const id of volumes) store.put(VolumeConfig, id, { type: 'partition', provisioning: {}, locator: {} })
  const phase = async (phase: 'waiting' | 'failed' | 'ready' | 'closed', ...ids: string[]) => {
    for (const id of ids) store.put(VolumeStatus, id, { phase, type: 'partition' })
    await runtime.settled()
  }
  runtime.start()
  return { store, runtime, phase, isOpen: () => store.get(PCRStatus, '11') !== undefined }
}

test('a machine without a TPM has no state of one', async () => {
  const { runtime, isOpen, phase } = machine(new TpmWindow({ tpm: { openTpm: async () => undefined } }))
  await phase('ready', ...volumes)
  expect(isOpen()).toBe(false)
  runtime.stop()
})

describe.skipIf(noSwtpm !== undefined)(noSwtpm ?? 'a machine with a TPM', () => {
  let swtpm: Swtpm
  beforeAll(async () => {
    swtpm = await startSwtpm()
  })
  afterAll(() => swtpm.stop())

  test('measures its phases, and closes the TPM when all volumes are open', async () => {
    const openTpm = async () => ({ transmit: swtpm.transmit, close: async () => {} })
    const tpm = new Tpm(swtpm.transmit)
    const window = new TpmWindow({ tpm: { openTpm } })
    const measured = async () => Buffer.concat([...(await tpm.readPcrs('sha256', [11])).values()]).toString('hex')
    const extended = (...words: string[]) =>
      words
        .reduce((value, word) => hash('sha256', Buffer.concat([value, hash('sha256', word, 'buffer')]), 'buffer'), Buffer.alloc(32))
        .toString('hex')
    const { runtime, phase, isOpen } = machine(window)
    await phase('waiting', ...volumes)
    expect([isOpen(), await measured()]).toEqual([true, extended('enter-machined')])
    await phase('ready', 'STATE', 'u-data')
    await phase('failed', 'EPHEMERAL')
    expect(isOpen()).toBe(true)
    expect(await window.use(async () => 'unsealed')).toBe('unsealed')
    await phase('ready', 'EPHEMERAL')
    expect([isOpen(), await measured()]).toEqual([false, extended('enter-machined', 'start-the-world')])
    await expect(window.use(async () => 'unsealed')).rejects.toThrow('the TPM seals and unseals only until all volumes are open')
    await phase('closed', 'u-data')
    await phase('waiting', 'u-data')
    expect([isOpen(), await measured()]).toEqual([false, extended('enter-machined', 'start-the-world')])
    runtime.stop()
  })
})
