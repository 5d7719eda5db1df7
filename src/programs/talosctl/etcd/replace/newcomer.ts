/** The machine that takes the place, while it waits in maintenance for the configuration that makes it a control plane. */

import { isIp } from '../../../../document/fields.ts'
import type { ConfigContainer } from '../../../../os/config/container.ts'
import { parseConfig } from '../../../../os/config/parse.ts'
import { Cluster } from '../../cluster.ts'
import { describe, UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { readConfig } from '../../machine/machine.ts'
import { Final } from '../../machine/within.ts'
import { applyTo } from '../../machine-config/applying.ts'
import { readFileOrStdin } from '../../patches.ts'
import type { MemberView } from './situation.ts'

/** A machine and its configuration. */
export interface Newcomer {
  readonly address: string
  readonly config: ConfigContainer
  readonly fingerprints: readonly string[] | undefined
}

interface Flags {
  readonly with?: string
  readonly configFile?: string
  readonly certFingerprint?: string[]
}

/** How long the machine may take to answer, in milliseconds. */
const timeout = 5_000

/** The machine that the flags describe, with its configuration checked; undefined when it gets none from here. */
export async function newcomerOf(io: Io, cluster: Cluster, members: readonly MemberView[], flags: Flags): Promise<Newcomer | undefined> {
  const { with: address = '', configFile, certFingerprint: fingerprints } = flags
  if (configFile === undefined) {
    if (fingerprints) throw new UsageError('--cert-fingerprint goes with --config-file only')
    return undefined
  }
  if (!isIp(address)) throw new UsageError('--config-file needs the address of the machine: name it with --with')
  const config = parseConfig(await readFileOrStdin(io, configFile, 'configuration'))
  const { machine, cluster: section } = config.v1alpha1 ?? {}
  if (machine?.type !== 'controlplane') throw new UsageError(`"${configFile}" is not the configuration of a control plane`)
  const own = await clusterIdOf(cluster, members)
  if (section?.id !== own)
    throw new UsageError(`"${configFile}" is of another cluster: its cluster.id is "${section?.id ?? ''}", expected "${own}"`)
  return { address, config, fingerprints }
}

async function clusterIdOf(cluster: Cluster, members: readonly MemberView[]): Promise<string> {
  const healthy = members.find((member) => member.healthy)
  if (!healthy) throw new UsageError('no member of etcd is healthy')
  return (await readConfig(cluster, healthy.address)).v1alpha1?.cluster?.id ?? ''
}

/** Applies the configuration if the machine waits for one; false when it does not, since it is off or has one already. */
export async function configureWaiting(io: Io, { address, config, fingerprints }: Newcomer): Promise<boolean> {
  const tls = { insecure: true, fingerprint: fingerprints }
  const waiting = new Cluster(io, { endpoints: [address], nodes: [], tls, source: '--with' })
  try {
    if (!(await answers(waiting))) return false
    const silenced: Io = { ...io, signal: io.signal, pause: (time) => io.pause(time), stderr: { ...io.stderr, write: () => {} } }
    await applyTo(silenced, waiting, config.bytes, { mode: 'auto', timeout: 60_000 })
    return true
  } catch (error) {
    // It would refuse the same configuration again.
    throw new Final(`apply the configuration to ${address}: ${describe(error).trim()}`, { cause: error })
  } finally {
    await waiting.close()
  }
}

/** A machine that has a configuration refuses callers without a certificate. */
async function answers(machine: Cluster): Promise<boolean> {
  try {
    await machine.ask('machine.MachineService/Version', {}, { timeout })
    return true
  } catch {
    return false
  }
}
