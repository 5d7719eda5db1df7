/** What the dashboard knows of the nodes, and what its user looks at: plain values, so that a screen is a function of them. */

/** A service in the list. */
export interface ServiceLine {
  readonly id: string
  readonly state: string
  /** Undefined when nobody checks. */
  readonly healthy?: boolean | undefined
}

/** A process in the list. */
export interface ProcessLine {
  readonly pid: number
  readonly name: string
  readonly state: string
  readonly threads: number
  /** Percent of one processor since the last look. */
  readonly cpu: number
  /** Bytes. */
  readonly memory: number
}

/** Something that moves bytes both ways. */
export interface RateLine {
  readonly name: string
  /** Bytes a second. */
  readonly inward: number
  readonly outward: number
}

/** One node. */
export interface NodeState {
  readonly name: string
  hostname: string
  version: string
  type: string
  stage: string
  ready: boolean
  /** What keeps it from being ready. */
  unmet: readonly string[]
  addresses: readonly string[]
  /** Addresses with their links, default routes, and the servers for names and time: rows of a name and a value. */
  paths: readonly (readonly [name: string, value: string])[]
  /** Whether its management server is heard; undefined without one. */
  managed: string | undefined
  /** What is wrong, the deepest cause first. */
  reasons: readonly string[]
  kubernetes: string
  members: number
  uptime: number
  processors: number
  load: readonly number[]
  /** Percent of all processors, oldest first. */
  cpu: number[]
  /** Percent of the memory in use. */
  memory: number[]
  memoryTotal: number
  memoryUsed: number
  services: readonly ServiceLine[]
  processes: readonly ProcessLine[]
  network: readonly RateLine[]
  disks: readonly RateLine[]
  kernelLog: string[]
  events: string[]
  /** Why the node could not be queried, if so. */
  error: string
}

/** The screens, in the order of their keys. */
export const tabs = ['Summary', 'Monitor', 'Network', 'Logs', 'Resources', 'Events'] as const

/** The name of a screen. */
export type Tab = (typeof tabs)[number]

/** A list to choose from with what was chosen. */
export interface Choice {
  readonly items: readonly string[]
  readonly at: number
}

/** What is looked at. */
export interface View {
  readonly tab: Tab
  readonly node: number
  /** Logs of the node, and lines of the chosen one. */
  readonly logs: Choice
  readonly log: readonly string[]
  readonly types: Choice
  readonly table: readonly string[]
  /** Lines that the main part is moved: up from its end for logs and events, down from its beginning elsewhere. */
  readonly scroll: number
  readonly help: boolean
}

/** A node of which nothing is known yet. */
export function newNode(name: string): NodeState {
  return {
    name,
    hostname: '',
    version: '',
    type: '',
    stage: '',
    ready: false,
    unmet: [],
    addresses: [],
    paths: [],
    managed: undefined,
    reasons: [],
    kubernetes: '',
    members: 0,
    uptime: 0,
    processors: 0,
    load: [],
    cpu: [],
    memory: [],
    memoryTotal: 0,
    memoryUsed: 0,
    services: [],
    processes: [],
    network: [],
    disks: [],
    kernelLog: [],
    events: [],
    error: '',
  }
}

/** What is looked at first. */
export const firstView: View = {
  tab: 'Summary',
  node: 0,
  logs: { items: [], at: 0 },
  log: [],
  types: { items: [], at: 0 },
  table: [],
  scroll: 0,
  help: false,
}
