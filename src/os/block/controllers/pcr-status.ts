import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { PCRStatus } from '../../hardware/resources/pcr-status.ts'
import { imagePcr, type TpmWindow } from '../encryption/tpm/tpm-window.ts'
import { VolumeConfig } from '../resources/volume-config.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

const required = ['STATE', 'EPHEMERAL']
/** Phases in which a volume takes no key any more. */
const settled: readonly string[] = ['ready', 'missing', 'closed']

/** Measures the phases of the start. The resource exists as long as the TPM unseals keys of volumes; a healthy node has none. */
export const measureStart = (window: TpmWindow): Controller => {
  let absent = false
  return defineController({
    name: 'hardware.PCRStatusController',
    inputs: { config: weak(VolumeConfig), status: weak(VolumeStatus) },
    outputs: { pcr: exclusive(PCRStatus) },
    async reconcile({ config, status, pcr, log }) {
      if (absent || window.isClosed) return
      if (!(await window.open())) {
        absent = true
        log.info('no TPM 2.0, the start is not measured')
        return
      }
      const phaseOf = (id: string) => status.get(id)?.spec.phase ?? ''
      const volumes = config.list().filter(({ spec }) => spec.type === 'partition' || spec.type === 'disk')
      const done =
        required.every((id) => phaseOf(id) === 'ready') && volumes.every(({ metadata }) => settled.includes(phaseOf(metadata.id)))
      if (!done) {
        pcr.put(String(imagePcr), {})
        return
      }
      await window.close()
      log.info('all volumes are open, the TPM is closed until the next start')
    },
  })
}
