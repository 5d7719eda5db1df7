import type { Clock } from '../cosi/clock.ts'
import type { Controller } from '../cosi/controller.ts'
import type { Logger } from '../cosi/log.ts'
import type { AnyResourceType } from '../cosi/resource.ts'
import type { Runtime } from '../cosi/runtime.ts'
import type { Store } from '../cosi/store.ts'
import type { Method } from '../rpc/server/method.ts'
import type { ServiceDefinition } from '../supervise/definition.ts'
import type { Spawn } from '../supervise/spawn.ts'
import type { Supervisor } from '../supervise/supervisor.ts'
import type { Meta } from './block/meta/meta.ts'
import type { ConfigApply } from './config/apply/config-apply.ts'
import type { Clouds } from './config/sources/platform.ts'
import type { OwnImages } from './cri/image-table.ts'
import type { Logind } from './k8s/logind/logind.ts'
import type { Kernel } from './kernel.ts'
import type { Sequencer } from './lifecycle/sequencer.ts'
import type { SystemChanges } from './lifecycle/system-changes.ts'
import type { NetworkOf } from './network/sockets.ts'
import type { Outbound } from './outbound.ts'
import type { ApidPlace } from './runtime/apid-place.ts'
import type { Events } from './runtime/events.ts'
import type { LastProblem } from './runtime/last-problem.ts'
import type { LogFiles } from './runtime/log-files.ts'
import type { Calls } from './telemetry/calls.ts'
import type { Deliveries } from './telemetry/shipping/deliveries.ts'

/** One subject of the operating system: its resources, and its parts of a machine. */
export interface Area {
  readonly name: string
  readonly resources: readonly AnyResourceType[]
  /** Called once for each machine, so what the parts of an area share is a value in here. */
  parts?(machine: Machine): AreaParts
}

/** Controllers, services and API methods of an area on a machine. */
export interface AreaParts {
  readonly controllers?: readonly Controller[]
  readonly services?: readonly ServiceDefinition[]
  readonly methods?: readonly Method[]
}

/** Whether the machine restarts or powers off. */
export type StopReason = 'reboot' | 'shutdown'

/**
 * Runs `act` while this machine holds the election `name`. `act`'s signal is aborted before another machine can be elected.
 * Rejects if the holder is unknown.
 */
export type Elect = (name: string, act: (holding: AbortSignal) => Promise<void>, signal: AbortSignal) => Promise<void>

/** What init passes to every area. What an area uses of an area above it is among these, because no import between areas points up. */
export interface Machine {
  readonly kernel: Kernel
  readonly store: Store
  readonly runtime: Runtime
  readonly log: Logger
  /** The machine's clock: durations never use the wall clock. */
  readonly clock: Clock
  readonly supervisor: Supervisor
  /** The lowest OOM score this machine may set; -1000 where there is no restriction. */
  readonly oomFloor: number
  /** Where apid runs. */
  readonly apidPlace: ApidPlace
  /** Starts a program of the image; the reaper recognizes such children as init's own. */
  readonly spawn: Spawn
  /** The most recent problem, for the console. */
  readonly problem: LastProblem
  readonly events: Events
  /** Logs on the disk, and those of the start before. */
  readonly logFiles: LogFiles
  readonly sequencer: Sequencer
  /** The order of what changes the installed system. */
  readonly systemChanges: SystemChanges
  /** Values stored besides the configuration, on the META partition once it exists. */
  readonly meta: Meta
  /** Receives configurations; the only writer of the active one. */
  readonly config: ConfigApply
  /** Platforms that provide configurations. */
  readonly clouds: Clouds
  /** Requests to servers outside of the cluster. */
  readonly outbound: Outbound
  /** Elections in the cluster's etcd, through this machine's own member, so that a member without quorum elects nobody. */
  readonly elect: Elect
  /** Delays a shutdown until the kubelet has ended its pods. */
  readonly logind: Logind
  /** Container images in the root file system. */
  readonly images: OwnImages
  /** Network namespaces of running pods, each with the process id of its sandbox. */
  podNetworks(): Promise<NetworkOf[]>
  /** What is sent to receivers of logs and events; a machine that stops waits for it. */
  readonly deliveries: Deliveries
  /** Records of API calls. */
  readonly calls: Calls
  /** The ids of all services that areas define. */
  serviceIds(): readonly string[]
  /** The definition of a service, by id. */
  service(id: string): ServiceDefinition
  /** Name and tag of this build. */
  readonly version: { readonly name: string; readonly tag: string; readonly sha: string; readonly built: string; readonly arch: string }
  /** Ends this process, and the machine where it is one; called when everything has stopped. */
  end(reason: StopReason): void
}
