import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { failedWith } from '../../../wire/errno.ts'
import { mostLogBytes } from '../../../wire/tpm2/buffer.ts'
import { type BankHash, pcrCount } from '../../../wire/tpm2/constants.ts'
import { type MeasuredEvent, parseEventLog } from '../../../wire/tpm2/event-log.ts'
import { type KernelMeasurement, parseImaLog } from '../../../wire/tpm2/ima-log.ts'
import { PCRMeasurement } from '../../hardware/resources/pcr-measurement.ts'
import type { Kernel } from '../../kernel.ts'
import { explainedPcrs } from '../encryption/tpm/explain-pcrs.ts'
import type { TpmWindow } from '../encryption/tpm/tpm-window.ts'

/** The log that the firmware left, with what the kernel found after it had taken over. */
const firmwareLog = '/sys/kernel/security/tpm0/binary_bios_measurements'
/** What the kernel measures itself, where it was built for that: Debian's measures the PCRs before, once, and files by a policy. */
const kernelLog = '/sys/kernel/security/ima/binary_runtime_measurements'
const banks: readonly BankHash[] = ['sha256', 'sha384', 'sha512', 'sha1']

type Files = Pick<Kernel['files'], 'exists' | 'read' | 'readTextIfThere'>

/** Publishes the PCRs of the TPM with the events that explain their values, again whenever init measured a phase. */
export const observeMeasurements = (window: TpmWindow, { files }: { readonly files: Files }): Controller => {
  let logs: { readonly firmware: readonly MeasuredEvent[]; readonly kernel: readonly KernelMeasurement[] } | undefined
  return defineController({
    name: 'hardware.PCRMeasurementController',
    inputs: {},
    outputs: { measurements: exclusive(PCRMeasurement) },
    start: ({ wake }) => window.subscribe(wake),
    async reconcile({ measurements, log }) {
      const seen = await window.observe(async (tpm, phases) => {
        const active = await tpm.pcrBanks()
        const found = banks.flatMap((bank) => active.find((each) => each.bank === bank && each.pcrs.length === pcrCount) ?? [])[0]
        return found && { bank: found.bank, values: await tpm.readPcrs(found.bank, found.pcrs), phases }
      })
      if (!seen) return
      if (!logs) {
        logs = { firmware: entriesOf(files, firmwareLog, parseEventLog, log), kernel: entriesOf(files, kernelLog, parseImaLog, log) }
        if (logs.firmware.length === 0) log.info('no event log of the firmware, its measurements are not explained')
      }
      const commandLine = files.readTextIfThere('/proc/cmdline')?.trim()
      for (const [pcr, spec] of explainedPcrs({ ...seen, ...logs, ...(commandLine !== undefined && { commandLine }) }))
        measurements.put(String(pcr), spec)
    },
  })
}

/** The entries of a log; none where there is no log, or one that cannot be read, which is logged once. */
function entriesOf<Entry>(files: Files, path: string, parse: (bytes: Uint8Array) => Entry[], log: Logger): Entry[] {
  try {
    return files.exists(path) ? parse(files.read(path, { limit: mostLogBytes })) : []
  } catch (error) {
    if (!(error instanceof DecodeError) && !failedWith(error, 'EFBIG', 'EIO', 'EPERM', 'EACCES')) throw error
    log.warn('log of measurements not readable, they are not explained', { path, error })
    return []
  }
}
