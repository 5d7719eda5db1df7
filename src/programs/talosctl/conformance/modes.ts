/** One run of the suite: which tests, and in how many processes. The patterns are Ginkgo's. */
export interface Pass {
  readonly focus: string
  readonly skip: string
  readonly procs: number
}

/** The passes of each mode; a failed pass is the last one. */
export const modes = {
  fast: [
    { focus: '\\[Conformance\\]', skip: '\\[Serial\\]', procs: 16 },
    { focus: '\\[Serial\\].*\\[Conformance\\]', skip: '', procs: 1 },
  ],
  certified: [{ focus: '\\[Conformance\\]', skip: '', procs: 1 }],
  'network-policy': [{ focus: '\\[Feature:NetworkPolicy\\]', skip: '', procs: 4 }],
} as const satisfies Record<string, readonly Pass[]>

/** Name of a mode. */
export type Mode = keyof typeof modes

/** What `health --run-e2e` runs: pods are made and removed, services lead to pods, and change their type. */
export const healthPass: Pass = {
  focus: [
    'Pods should be submitted and removed',
    'Services should serve a basic endpoint from pods',
    'Services should be able to change the type from ExternalName to ClusterIP',
  ].join('|'),
  skip: '',
  procs: 2,
}
