import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { MetaKey, MetaLoad } from '../../runtime/resources/meta.ts'
import { readStateRecord } from '../encryption/state-record.ts'
import { type Meta, metaId, metaTags } from '../meta/meta.ts'
import { VolumeConfig } from '../resources/volume-config.ts'
import { VolumeMountRequest } from '../resources/volume-mount.ts'
import { encryptionOf, systemVolumes } from '../volumes/declaration.ts'
import { systemLabels } from '../volumes/folders.ts'
import { dependentVolumes, ephemeralVolume, imageCacheIds, imageCacheVolume, metaVolume, stateVolume } from '../volumes/system.ts'
import { type MountOptions, userVolumes } from '../volumes/user.ts'

const requester = 'block.VolumeConfigController'

/** Volume kinds by the first letter of the partition label. */
const kinds: Readonly<Record<string, string>> = { u: 'user', r: 'raw', s: 'swap', e: 'existing', x: 'external' }

const stateEncryption = metaId(metaTags.stateEncryption)

/**
 * Declares the system volumes and the configured volumes. Until there is a configuration, META states how STATE is encrypted; its
 * resource is without the passphrases.
 */
export const configVolumes = (values: Pick<Meta, 'get'>): Controller =>
  defineController({
    name: requester,
    effects: 'none',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      meta: weak(MetaKey, { id: stateEncryption }),
      loaded: weak(MetaLoad, { id: 'meta-loaded' }),
    },
    outputs: { volume: shared(VolumeConfig), request: shared(VolumeMountRequest) },
    reconcile({ config, meta, loaded, volume, request, log }) {
      const read = declared(config.get('v1alpha1'))
      const declaration = read && Object.keys(read.machine).length > 0 ? systemVolumes(read) : undefined
      const requestMount = (id: string, { readOnly, disableAccessTime, secure }: MountOptions) =>
        request.put(id, { volumeID: id, requester, readOnly, detached: false, disableAccessTime, secure })
      volume.put('META', metaVolume, { labels: systemLabels })
      if (!read || !declaration) {
        if (loaded.get('meta-loaded'))
          volume.put('STATE', stateVolume(undefined, recorded(meta.get(stateEncryption) && values.get(metaTags.stateEncryption), log)), {
            labels: systemLabels,
          })
        return
      }
      const encryption = (name: 'STATE' | 'EPHEMERAL') =>
        encryptionOf(declaration.get(name)?.encryption ?? read.machine.systemDiskEncryption?.[name === 'STATE' ? 'state' : 'ephemeral'])
      volume.put('STATE', stateVolume(declaration, encryption('STATE')), { labels: systemLabels })
      const quota = read.machine.features?.diskQuotaSupport === true
      volume.put('EPHEMERAL', ephemeralVolume(declaration, quota, encryption('EPHEMERAL')), { labels: systemLabels })
      // Declared together with EPHEMERAL, which would take its space otherwise.
      if (declaration.has(imageCacheIds.disk) || read.machine.features?.imageCache?.localEnabled === true)
        volume.put(imageCacheIds.disk, imageCacheVolume(declaration), { labels: systemLabels })
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

function recorded(text: string | undefined, log: Logger): Pick<SpecOf<typeof VolumeConfig>, 'encryption'> {
  if (!text) return {}
  try {
    const encryption = readStateRecord(text)
    return encryption ? { encryption } : {}
  } catch (error) {
    log.error('encryption of STATE in META unreadable', { tag: stateEncryption, error })
    return {}
  }
}
