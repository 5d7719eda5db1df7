import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { PCRMeasurement } from '../../hardware/resources/pcr-measurement.ts'
import { MachineStatus } from '../../runtime/resources/machine-status.ts'
import { MetaKey } from '../../runtime/resources/meta.ts'
import { differences } from '../measurements/compare.ts'
import { type GoodStart, keepGoodStart, lastGoodStart } from '../measurements/good-start.ts'
import { PCRChange } from '../resources/pcr-change.ts'
import { trialOf } from '../upgrade/records.ts'

/** Parts of the machine that this uses. */
type Dependencies = Pick<Machine, 'meta' | 'version'> & { readonly kernel: { readonly files: Machine['kernel']['files'] } }

/**
 * Compares the measurements of this start with those of the last good one, and keeps them when this one is good: when the machine is
 * ready, and its release is not on trial. Where a later start does not get that far, the comparison is still with one that did.
 */
export const compareStarts = (machine: Dependencies): Controller => {
  const { files } = machine.kernel
  let last: { readonly start: GoodStart | undefined } | undefined
  let logged = ''
  let kept = false
  return defineController({
    name: 'runtime.StartComparisonController',
    inputs: {
      measurements: weak(PCRMeasurement),
      state: weak(VolumeMountStatus, { id: mountId('STATE') }),
      status: weak(MachineStatus, { id: 'machine' }),
      // The record of a trial is one of them.
      meta: weak(MetaKey),
    },
    outputs: { changes: exclusive(PCRChange) },
    async reconcile({ measurements, state, status, changes, log, now }) {
      const measured = new Map(measurements.list().map(({ metadata, spec }) => [metadata.id, spec]))
      const [first] = measured.values()
      if (!first || !state.get(mountId('STATE'))) return
      last ??= { start: lastGoodStart(files, log) }
      const { start } = last
      // Digests of different hashes cannot be compared.
      if (start?.bank === first.bank) {
        const changed = new Set<string>()
        for (const pcr of new Set([...Object.keys(start.pcrs), ...measured.keys()])) {
          const before = start.pcrs[pcr]
          const found = differences(before, measured.get(pcr))
          if (found.length > 0) changed.add(pcr)
          const { time: since, release } = start
          changes.put(pcr, { changed: found.length > 0, since, release, ...(before && { before: before.value }), changes: found })
        }
        const pcrs = [...changed].sort((a, b) => Number(a) - Number(b)).join(', ')
        if (pcrs !== '' && pcrs !== logged) log.warn('measurements changed since the last good start', { pcrs, since: start.time })
        logged = pcrs
      }
      const machineStatus = status.get('machine')?.spec
      if (kept || machineStatus?.stage !== 'running' || !machineStatus.status.ready || trialOf(machine)) return
      const pcrs = Object.fromEntries([...measured].map(([pcr, { value, explained, events }]) => [pcr, { value, explained, events }]))
      await keepGoodStart(files, { time: now().toISOString(), release: machine.version.tag, bank: first.bank, pcrs })
      kept = true
    },
  })
}
