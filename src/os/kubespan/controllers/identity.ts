import { parse } from 'yaml'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import type { Kernel } from '../../kernel.ts'
import { mountId, stateIsAwaited } from '../../lifecycle/volumes.ts'
import { HardwareAddress } from '../../network/resources/hardware-address.ts'
import { newPrivateKey, publicKeyOf } from '../keys.ts'
import { meshAddress } from '../mesh.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanIdentity } from '../resources/kube-span-identity.ts'
import type { WireguardPresence } from '../wireguard-presence.ts'

/** Where the key is kept over restarts, on STATE. */
const identityPath = '/system/state/kubespan-identity.yaml'

interface Door {
  readonly mode: Kernel['mode']
  readonly files: Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'>
}

/** This node's key, made once and kept for as long as STATE is, and its address, which follows from cluster and network card. */
export const configKubeSpanIdentity = ({ mode, files }: Door, presence: WireguardPresence): Controller =>
  defineController({
    name: 'kubespan.IdentityController',
    inputs: {
      config: weak(KubeSpanConfig, { id: 'kubespan' }),
      hardware: weak(HardwareAddress, { id: 'first' }),
      volumes: weak(VolumeStatus, { id: 'STATE' }),
      mounts: weak(VolumeMountStatus, { id: mountId('STATE') }),
    },
    outputs: { identity: exclusive(KubeSpanIdentity) },
    async reconcile({ config, hardware, volumes, mounts, identity, log, clock, wakeIn }) {
      const mesh = config.get('kubespan')?.spec
      const card = hardware.get('first')?.spec.hardwareAddr
      if (!mesh?.enabled || !mesh.clusterId || !card) return
      // Who cannot be meshed tells of no key: the others would send into the void.
      const time = clock.elapsed()
      if (presence.look(time) !== 'there') return wakeIn(presence.again(time))
      const before = identity.get('local')?.spec.privateKey
      // A machine that has a STATE has its key there; one that gets a STATE keeps the key it had.
      if (stateIsAwaited(mode, volumes, mounts) && before === undefined) return
      const kept = keptKey(files.readTextIfThere(identityPath)) ?? before
      const privateKey = kept ?? newPrivateKey()
      const spec = { ...meshAddress(mesh.clusterId, card), privateKey, publicKey: publicKeyOf(privateKey) }
      const text = Object.entries(spec)
        .map(([name, value]) => `${name}: ${value}\n`)
        .join('')
      if (files.readTextIfThere(identityPath) !== text) {
        await files.writeAtomic(identityPath, text, { mode: 0o600 })
        if (!kept) log.info('mesh identity established', { public_key: spec.publicKey, address: spec.address })
      }
      identity.put('local', spec)
    },
  })

/** The key of the file; one that does not read is replaced, for peers learn of the new one. */
function keptKey(text: string | undefined): string | undefined {
  if (!text) return undefined
  try {
    const { privateKey } = parse(text) ?? {}
    if (typeof privateKey !== 'string') return undefined
    publicKeyOf(privateKey)
    return privateKey
  } catch {
    return undefined
  }
}
