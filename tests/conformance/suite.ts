/** A cluster for the Kubernetes conformance suite, runs of the suite on it, and what their reports say. */
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { serveCache } from '../../src/programs/talosctl/image-cache/serve.ts'
import { TestCluster } from '../cluster/cluster.ts'
import { conformanceImages, imageRegistry } from './images.ts'
import { type ConformancePrograms, conformancePrograms } from './programs.ts'

const gateway = '10.77.0.1'
const registryPort = 5077

/** A cluster of one control plane and two workers whose images come from a registry on its bridge. */
export class ConformanceCluster {
  private constructor(
    readonly cluster: TestCluster,
    readonly programs: ConformancePrograms,
    private readonly registry: { close(): Promise<void> },
  ) {}

  /** Builds what the suite needs and creates the cluster. */
  static async create(name: string): Promise<ConformanceCluster> {
    const programs = await conformancePrograms()
    const { folder } = await conformanceImages(programs)
    // The bridge has its address once the cluster is being created, so the registry listens on all addresses of the host.
    const registry = serveCache({ folder, hostname: '0.0.0.0', port: registryPort, domains: [imageRegistry] })
    const cluster = new TestCluster(name)
    try {
      await cluster.create(
        ...['--cidr', `${gateway.slice(0, -1)}0/24`, '--workers', '2', '--memory-workers', '4GiB', '--memory-controlplanes', '3GiB'],
        ...['--registry-mirror', `${imageRegistry}=http://${gateway}:${registryPort}`],
      )
    } catch (error) {
      await cluster.destroy()
      await registry.close()
      throw error
    }
    return new ConformanceCluster(cluster, programs, registry)
  }

  /** Destroys the cluster. */
  async close(): Promise<void> {
    await this.cluster.destroy()
    await this.registry.close()
    this.cluster.close()
  }

  /** Runs the chosen tests; the report and the log of the run are in `folder`. */
  run(chosen: Choice, folder: string): Promise<SpecResult[]> {
    return runSuite(this.programs, this.cluster.env.KUBECONFIG ?? '', chosen, folder)
  }
}

/** Runs the chosen tests on the cluster of a kubeconfig; the report and the log of the run are in `folder`. */
export async function runSuite(programs: ConformancePrograms, kubeconfig: string, chosen: Choice, folder: string): Promise<SpecResult[]> {
  mkdirSync(folder, { recursive: true })
  const report = 'report.json'
  const child = Bun.spawn(
    [
      join(programs.folder, 'ginkgo'),
      ...['--no-color', '--timeout=3h', '--poll-progress-after=5m', `--procs=${chosen.procs}`],
      ...[`--output-dir=${folder}`, '--junit-report=junit_01.xml', `--json-report=${report}`],
      ...chosen.focus.map((pattern) => `--focus=${pattern}`),
      ...(chosen.skip ?? []).map((pattern) => `--skip=${pattern}`),
      join(programs.folder, 'e2e.test'),
      ...['--', '--provider=skeleton', `--kubeconfig=${kubeconfig}`, '--disable-log-dump'],
      `--kubectl-path=${realpathSync(join(import.meta.dir, '../../dist/kubectl'))}`,
    ],
    { env: { ...process.env, KUBECONFIG: kubeconfig }, stdin: 'ignore', stdout: Bun.file(join(folder, 'e2e.log')), stderr: 'inherit' },
  )
  const code = await child.exited
  const path = join(folder, report)
  if (!existsSync(path)) throw new Error(`the suite ended with exit code ${code} and without a report: see "${folder}/e2e.log"`)
  return readSpecs(readFileSync(path, 'utf8'))
}

/** Which tests run, by patterns of their names, and in how many processes. */
export interface Choice {
  readonly focus: readonly string[]
  readonly skip?: readonly string[]
  readonly procs: number
}

/** The pattern of this name; Ginkgo puts the suite's own description before it. */
export function exactly(name: string): string {
  return `${name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`
}

/** A test that was chosen. */
export interface SpecResult {
  readonly name: string
  readonly passed: boolean
  readonly seconds: number
  /** Why it failed, in one line. */
  readonly reason: string
}

const reports = v.array(
  v.object({
    SpecReports: v.array(
      v.object({
        ContainerHierarchyTexts: v.nullish(v.array(v.string()), []),
        LeafNodeType: v.string(),
        LeafNodeText: v.string(),
        State: v.string(),
        RunTime: v.number(),
        Failure: v.optional(v.object({ Message: v.optional(v.string(), '') })),
      }),
    ),
  }),
)

/**
 * The chosen tests of a JSON report by Ginkgo (its run times are in nanoseconds). What was not chosen is there as skipped
 * without a message; a test that skips itself counts as not passed.
 */
export function readSpecs(json: string): SpecResult[] {
  const specs = v.parse(reports, JSON.parse(json)).flatMap(({ SpecReports }) => SpecReports)
  return specs.flatMap(({ ContainerHierarchyTexts, LeafNodeType, LeafNodeText, State, RunTime, Failure }) => {
    if (LeafNodeType !== 'It' || (State === 'skipped' && !Failure?.Message)) return []
    const name = [...ContainerHierarchyTexts, LeafNodeText].join(' ')
    return [{ name, passed: State === 'passed', seconds: RunTime / 1e9, reason: `${State}: ${Failure?.Message.split('\n')[0] ?? ''}` }]
  })
}
