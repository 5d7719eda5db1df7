import { mkdirSync } from 'node:fs'
import { formatPrefix } from '../../../wire/prefix.ts'
import { type ClusterRecord, networksOf } from '../../node-supervisor/layout.ts'
import { UsageError } from '../failure.ts'
import { parseCidr } from './host/cidr.ts'
import { clash, hostNetworks } from './host/networks.ts'
import { checkDisk, checkImage, checkKernel, checkLoop, checkMesh, checkRoot } from './host/preflight.ts'
import type { ClusterRequest } from './plan/plan.ts'
import { checkMachines, checkRoom } from './qemu/preflight.ts'

/** A cluster's nodes are all of one kind. */
export function checkSameKind(record: ClusterRecord, request: ClusterRequest): void {
  const kind = ({ machines, engine }: { machines?: unknown; engine?: unknown }) => (machines ? 'qemu' : engine ? 'docker' : 'container')
  if (kind(record) === kind(request)) return
  const { has, say } = {
    qemu: { has: 'virtual machines', say: 'create qemu' },
    docker: { has: 'containers of Docker or Podman', say: 'create docker' },
    container: { has: 'containers', say: 'create' },
  }[kind(record)]
  throw new UsageError(`cluster "${record.name}" consists of ${has}: say "talosctl cluster ${say}", or choose another name with --name`)
}

/** What this host lacks, or has in the way, for nodes that were created before. */
export function checkHostAgain({ machines, network, image }: ClusterRecord): void {
  if (machines) checkMachines(machines)
  else checkContainers(image)
  const others = hostNetworks().filter(({ link }) => link !== network.bridge)
  for (const cidr of networksOf({ network })) {
    const taken = clash(parseCidr(cidr), others)
    if (taken) throw new UsageError(`network ${cidr} of the nodes overlaps ${formatPrefix(taken.cidr)} of ${taken.link}: change that link`)
  }
}

function checkContainers(image: string): void {
  checkRoot()
  checkKernel()
  checkLoop()
  checkImage(image)
}

/** What this host lacks for the requested nodes. */
export function checkHost(request: ClusterRequest, present: ClusterRecord | undefined, mesh = false): void {
  const { controlplanes, workers, machines, state, image } = request
  const added = Math.max(0, controlplanes.count + workers.count - (present?.nodes.length ?? 0))
  if (machines) {
    checkMachines(machines)
    mkdirSync(state, { recursive: true, mode: 0o700 })
    checkRoom(state, added * machines.disks.reduce((sum, { size }) => sum + size, 0))
    return
  }
  checkContainers(image)
  if (mesh) checkMesh()
  checkDisk(state, added)
}
