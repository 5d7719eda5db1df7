import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { VolumeConfig } from '../resources/volume-config.ts'
import { VolumeMountRequest } from '../resources/volume-mount.ts'
import { systemVolumes } from '../volumes/declaration.ts'
import { systemLabels } from '../volumes/folders.ts'
import { dependentVolumes, ephemeralVolume, metaVolume, stateVolume } from '../volumes/system.ts'
import { type MountOptions, userVolumes } from '../volumes/user.ts'

const requester = 'block.VolumeConfigController'

/** Volume kinds by the first letter of the partition label. */
const kinds: Readonly<Record<string, string>> = { u: 'user', r: 'raw', s: 'swap', e: 'existing', x: 'external' }

/** Declares the system volumes and the configured volumes. */
export const configVolumes: Controller = defineController({
  name: requester,
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { volume: shared(VolumeConfig), request: shared(VolumeMountRequest) },
  reconcile({ config, volume, request }) {
    const read = declared(config.get('v1alpha1'))
    const declaration = read && Object.keys(read.machine).length > 0 ? systemVolumes(read) : undefined
    const requestMount = (id: string, { readOnly, disableAccessTime, secure }: MountOptions) =>
      request.put(id, { volumeID: id, requester, readOnly, detached: false, disableAccessTime, secure })
    volume.put('META', metaVolume, { labels: systemLabels })
    volume.put('STATE', stateVolume(declaration), { labels: systemLabels })
    if (!read || !declaration) return
    volume.put('EPHEMERAL', ephemeralVolume(declaration, read.machine.features?.diskQuotaSupport === true), { labels: systemLabels })
    for (const [id, spec] of dependentVolumes()) {
      volume.put(id, spec, { labels: systemLabels })
      requestMount(id, { readOnly: false, disableAccessTime: false, secure: false })
    }
    for (const made of userVolumes(read)) {
      volume.put(made.id, made.config, { labels: { [`talos.dev/${kinds[made.id.charAt(0)]}-volume`]: '' } })
      if (made.mount) requestMount(made.id, made.mount)
    }
  },
})
