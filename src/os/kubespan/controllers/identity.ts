import { parse } from 'yaml'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { newPrivateKey, publicKeyOf } from '../../../wire/wireguard/keys.ts'
import { stateIsAwaited } from '../../block/public.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import type { Kernel } from '../../kernel.ts'
import { HardwareAddress } from '../../network/resources/hardware-address.ts'
import { meshAddress } from '../mesh.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanIdentity } from '../resources/kube-span-identity.ts'
import type { WireguardPresence } from '../wireguard-presence.ts'

/** The key file on STATE, kept over reboots. */
const identityPath = '/system/state/kubespan-identity.yaml'

interface IdentityKernel {
  readonly mode: Kernel['mode']
  readonly files: Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'>
}

/** Publishes this node's key, generated once and kept as long as STATE, and its address, derived from cluster id and hardware address. */
export const configKubeSpanIdentity = ({ mode, files }: IdentityKernel, presence: WireguardPresence): Controller =>
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
      const hardwareAddress = hardware.get('first')?.spec.hardwareAddr
      if (!mesh?.enabled || !mesh.clusterId || !hardwareAddress) return
      // A node without WireGuard publishes no key, so that peers do not route into a black hole.
      const time = clock.elapsed()
      if (presence.look(time) !== 'there') return wakeIn(presence.again(time))
      const before = identity.get('local')?.spec.privateKey
      // If STATE exists, the key is stored there; when it is created later, the present key is written to it.
      if (stateIsAwaited(mode, volumes, mounts) && before === undefined) return
      const kept = keptKey(files.readTextIfThere(identityPath)) ?? before
      const privateKey = kept ?? newPrivateKey()
      const spec = { ...meshAddress(mesh.clusterId, hardwareAddress), privateKey, publicKey: publicKeyOf(privateKey) }
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

/** Reads the key file. An invalid key is replaced; peers learn the new one. */
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
