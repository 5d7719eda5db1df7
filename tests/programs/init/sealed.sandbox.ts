/** A machine whose volumes are sealed by its TPM: it opens them in the same image, not in another, and adapts to a changed machine. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { PCRStatus } from '../../../src/os/hardware/resources/pcr-status.ts'
import { SecurityState } from '../../../src/os/runtime/resources/security-state.ts'
import { imageOf, measureImage, newPcrKey, policyFiles } from '../../support/measured-image.ts'
import { noSwtpm, type Swtpm, startSwtpm } from '../../support/swtpm.ts'
import { Hardware } from './sandbox-hardware.ts'
import { ended, machineConfig, startMachine } from './sandbox-machine.ts'
import { unexpected, useSandbox } from './sandbox-node.ts'
import { ready, status, stop, until, volume } from './sandbox-volumes.ts'

const configuration = `${machineConfig()}${volume('STATE', '[{ slot: 0, tpm: {} }, { slot: 3, static: { passphrase: spare } }]')}${volume('EPHEMERAL', '[{ slot: 1, tpm: { options: { pcrs: [] } }, lockToState: true }]')}`

describe.skipIf(noSwtpm !== undefined)(noSwtpm ?? 'a machine with a TPM', () => {
  useSandbox()
  const maker = newPcrKey()
  const hardware = new Hardware(true)
  let swtpm: Swtpm
  beforeAll(async () => {
    swtpm = await startSwtpm()
    hardware.tpm = swtpm.transmit
  })
  afterAll(async () => {
    await swtpm.stop()
    hardware.remove()
    expect(unexpected).toEqual([])
  })

  /** Turns the power on: PCRs are reset, and the firmware, the stub and stage 0 measure what they start. */
  async function start(from: 'medium' | 'disk', { image = imageOf(maker), firmware = 'Secure Boot is on' } = {}) {
    await swtpm.restart()
    await measureImage(swtpm.transmit, image, firmware)
    return startMachine(hardware, { from, left: policyFiles(image), uncounted: true, ...(from === 'medium' && { config: configuration }) })
  }

  test('seals its volumes at the installation', async () => {
    expect(await ended(await start('medium'))).toEqual(['reboot'])
  }, 60_000)

  test('opens them at its start, and closes the TPM then', async () => {
    const here = await start('disk')
    await until(here, 'EPHEMERAL', () => ready(here))
    const tpmEncryptionOptions = { pcrs: [7], pubKeyPcrs: [11] }
    expect(status(here, 'STATE')).toMatchObject({ encryptionSlot: 0, configuredEncryptionKeys: ['static', 'tpm'], tpmEncryptionOptions })
    expect(status(here, 'EPHEMERAL')).toMatchObject({
      encryptionSlot: 1,
      encryptionLockedToState: true,
      tpmEncryptionOptions: { pcrs: [], pubKeyPcrs: [11] },
    })
    expect(status(here, 'STATE')?.encryptionFailedSyncs).toBeUndefined()
    await until(here, 'the end of the window', () => here.machine.store.get(PCRStatus, '11') === undefined)
    expect(here.machine.store.get(SecurityState, 'securitystate')?.spec.pcrSigningKeyFingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
    await stop(here)
  }, 60_000)

  test('opens them in the next image of the same maker', async () => {
    const here = await start('disk', { image: imageOf(maker, 'quiet splash') })
    await until(here, 'EPHEMERAL', () => ready(here))
    expect(status(here, 'STATE')?.encryptionSlot).toBe(0)
    await stop(here)
  }, 60_000)

  test('does not open them in an image of another maker, but for another key', async () => {
    const before = unexpected.length
    const here = await start('disk', { image: imageOf(newPcrKey()) })
    await until(here, 'the refusal', () => status(here, 'EPHEMERAL')?.phase === 'failed')
    expect(status(here, 'STATE')?.encryptionSlot).toBe(3)
    expect(status(here, 'EPHEMERAL')?.errorMessage).toContain('slot 1 (tpm): the running image is signed with another PCR key')
    expect(here.machine.store.get(PCRStatus, '11')).toBeDefined()
    await here.stop()
    unexpected.length = before
  }, 60_000)

  test('takes the key of a changed machine back once another key opened the volume', async () => {
    const changed = { firmware: 'Secure Boot has new keys' }
    // The start in the other image has replaced the key as well.
    for (const slot of [3, 0]) {
      const here = await start('disk', changed)
      await until(here, 'EPHEMERAL', () => ready(here))
      expect(status(here, 'STATE')?.encryptionSlot).toBe(slot)
      await stop(here)
    }
  }, 120_000)
})
