import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { kubeClient } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import { fileFromTarGz } from '../../archive/one-file.ts'
import type { Cluster } from '../../cluster.ts'
import { type Mode, modes, type Pass } from '../../conformance/modes.ts'
import { productYaml } from '../../conformance/product.ts'
import { clusterVersion, defaultShell, SuiteRun, suiteImages } from '../../conformance/suite-run.ts'
import { ExitCode } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { fetchKubeconfig } from '../../kubeconfig-fetch.ts'

interface ConformanceOptions {
  mode: Mode
  image?: string
  shellImage: string
  output: string
  focus?: string
  skip?: string
}

/** talosctl conformance */
export const conformance = (io: Io, cluster: Cluster) =>
  new Command().description('Run conformance tests.').addCommand(
    new Command('kubernetes')
      .alias('k8s')
      .description('Run the Kubernetes conformance suite inside the cluster and save its results.')
      .addOption(new Option('--mode <mode>', 'which tests, and how').choices(Object.keys(modes)).default('fast'))
      .option('--image <reference>', "image of the suite; default: that of the cluster's version")
      .option('--shell-image <reference>', 'image with a shell and base64', defaultShell)
      .option('--output <folder>', 'where the results go, in a folder of the version', '.')
      .option('--focus <pattern>', 'only tests whose names match, in place of those of the mode')
      .option('--skip <pattern>', 'not the tests whose names match, in place of those of the mode')
      .action((options: ConformanceOptions) => runConformance(io, cluster, options)),
  )

/** Runs the passes of the mode until one fails; exit code 1 when one did. */
export async function runConformance(io: Io, cluster: Cluster, options: ConformanceOptions): Promise<void> {
  await cluster.single('conformance kubernetes')
  const client = kubeClient(accessOf(parseKubeconfig(await fetchKubeconfig(cluster))))
  try {
    const version = await clusterVersion(client, io.signal)
    const suite = options.image ?? suiteImages(version).suite
    const run = new SuiteRun(io, client, { suite, shell: options.shellImage })
    const folder = join(options.output, version.split('.').slice(0, 2).join('.'), 'ichor')
    for (const [index, pass] of passesOf(options).entries()) {
      const { exitCode, archive } = await run.pass(pass)
      await save(archive, index === 0 ? folder : join(folder, `pass-${index + 1}`))
      io.stderr.write(`results are in "${folder}"\n`)
      if (exitCode === 0) continue
      io.stderr.write(`the suite ended with exit code ${exitCode}: e2e.log names what failed\n`)
      throw new ExitCode(1)
    }
    if (options.mode === 'certified') writeFileSync(join(folder, 'PRODUCT.yaml'), await product(cluster))
  } finally {
    client.close()
  }
}

/** The passes of the mode, or one of the tests that were chosen by name. */
function passesOf({ mode, focus, skip }: ConformanceOptions): Pass[] {
  const [first, ...others] = modes[mode]
  if (focus !== undefined || skip !== undefined) return [{ ...first, focus: focus ?? first.focus, skip: skip ?? first.skip }]
  return [first, ...others]
}

async function save(archive: Uint8Array, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  for (const name of ['e2e.log', 'junit_01.xml']) writeFileSync(join(folder, name), await fileFromTarGz(archive, name))
}

/** PRODUCT.yaml of the release that the cluster runs. */
async function product(cluster: Cluster): Promise<string> {
  const [reply] = await cluster.ask('machine.MachineService/Version', {})
  return productYaml(reply?.version?.tag ?? '')
}
