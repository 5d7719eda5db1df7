import { expect, test } from 'bun:test'
import type { ConfigContainer } from '../../../../src/os/config/container.ts'
import { type ComponentName, componentNames, imageIn } from '../../../../src/programs/talosctl/kubernetes-upgrade/components.ts'
import type { UpgradedNode } from '../../../../src/programs/talosctl/kubernetes-upgrade/nodes.ts'
import { stepsBack } from '../../../../src/programs/talosctl/kubernetes-upgrade/rollback.ts'
import type { RecordedNode } from '../../../../src/programs/talosctl/kubernetes-upgrade/state.ts'
import { changed, runSteps, type Step, type StepOperations, stepsOf } from '../../../../src/programs/talosctl/kubernetes-upgrade/steps.ts'
import { controlPlane, worker } from '../rotation/machines.ts'

const node = (name: string, isControlPlane = true): UpgradedNode => ({ address: name, name, controlPlane: isControlPlane })
const nodes = [node('a'), node('b'), node('w', false)]
const image = (component: ComponentName, tag = 'v1.36.9') => `example.org/${component}:${tag}`
const target = (_: UpgradedNode, component: ComponentName) => ({ configured: image(component), running: image(component) })
const steps = stepsOf(nodes, target)
const titles = (some: readonly Step[]) => some.map(({ component, node }) => `${component} ${node.name}`)

/** Machines that hold configurations. `interrupt` is called before each change and each proof. */
function machines(interrupt: (what: string) => void = () => {}) {
  const configs = new Map<string, ConfigContainer>(nodes.map(({ name, controlPlane: own }) => [name, own ? controlPlane : worker]))
  const done: string[] = []
  const reports: string[] = []
  const operations: StepOperations = {
    read: async ({ node }) => ({ config: configs.get(node.name)!, running: undefined }),
    async apply({ component, node }, config) {
      interrupt(`apply ${component} ${node.name}`)
      configs.set(node.name, config)
      done.push(`apply ${component} ${node.name}`)
    },
    async prove({ component, node }) {
      interrupt(`prove ${component} ${node.name}`)
      done.push(`prove ${component} ${node.name}`)
    },
    report: (line) => reports.push(line),
  }
  return { configs, done, reports, operations }
}

test('the API servers come first and the kubelets last, node by node, and each is proven before the next', async () => {
  expect(titles(steps)).toEqual([
    'kube-apiserver a',
    'kube-apiserver b',
    'kube-controller-manager a',
    'kube-controller-manager b',
    'kube-scheduler a',
    'kube-scheduler b',
    'kube-proxy a',
    'kube-proxy b',
    'kubelet a',
    'kubelet b',
    'kubelet w',
  ])
  const { done, configs, operations } = machines()
  await runSteps(steps, operations, true)
  expect(done).toEqual(titles(steps).flatMap((title) => [`apply ${title}`, `prove ${title}`]))
  for (const component of componentNames) expect(imageIn(configs.get('a')!, component)).toBe(image(component))
  expect(imageIn(configs.get('w')!, 'kubelet')).toBe(image('kubelet'))
  expect(imageIn(configs.get('w')!, 'kube-apiserver')).toBe(imageIn(worker, 'kube-apiserver'))
})

test.each(['apply kube-apiserver b', 'prove kube-scheduler a', 'apply kubelet a', 'prove kubelet w'])(
  'interrupted at "%s", a second run does what is left and changes nothing twice',
  async (at) => {
    let broken = true
    const { done, operations } = machines((what) => {
      if (broken && what === at) throw new Error('cut off')
    })
    await expect(runSteps(steps, operations, true)).rejects.toThrow('cut off')
    broken = false
    await runSteps(steps, operations, true)
    expect(done.filter((what) => what.startsWith('apply'))).toEqual(titles(steps).map((title) => `apply ${title}`))
  },
)

test('an error names the component, the node and how far the upgrade is', async () => {
  const { operations } = machines((what) => {
    if (what === 'prove kube-scheduler b') throw new Error('its pod is not ready')
  })
  await expect(runSteps(steps, operations, true)).rejects.toThrow('kube-scheduler of b (6/11): its pod is not ready')
})

test('a component that is switched off is left out', async () => {
  const { configs, done, operations } = machines()
  configs.set(
    'a',
    controlPlane.patch(
      JSON.stringify({ machine: { controlPlane: { scheduler: { disabled: true } } }, cluster: { proxy: { disabled: true } } }),
    ),
  )
  await runSteps(steps, operations, true)
  expect(done).not.toContain('apply kube-scheduler a')
  expect(done).not.toContain('apply kube-proxy a')
  expect(done).toContain('apply kube-scheduler b')
})

test('digests do not count, and an image in effect needs no change', () => {
  const step = { component: 'kubelet', node: nodes[2]!, configured: image('kubelet'), running: image('kubelet') } as const
  const having = (one: string) => worker.patch(JSON.stringify({ machine: { kubelet: { image: one } } }))
  expect(changed(step, having(`${image('kubelet')}@sha256:${'0'.repeat(64)}`), undefined)).toBeUndefined()
  expect(changed(step, having(image('kubelet', 'v1.36.8')), undefined)?.text).toContain(image('kubelet'))
  const without = worker.patch('[{"op":"remove","path":"/machine/kubelet/image"}]')
  expect(changed(step, without, image('kubelet'))).toBeUndefined()
  expect(changed(step, without, image('kubelet', 'v1.36.8'))?.text).toContain(image('kubelet'))
})

test('a rollback goes the way back, to what each node had, and is proven when the API servers are back', async () => {
  const images = (own: boolean): RecordedNode['images'] =>
    Object.fromEntries(
      componentNames
        .filter((component) => own || component === 'kubelet')
        .map((component) => [component, { configured: image(component, 'v1.35.4'), running: image(component, 'v1.35.4') }]),
    )
  const recorded: RecordedNode[] = nodes.map((one) => ({ ...one, images: images(one.controlPlane) }))
  // One node had no image in its configuration: it has none again.
  recorded[1]!.images['kube-scheduler'] = { running: image('kube-scheduler', 'v1.35.4') }
  const back = stepsBack({ nodes: recorded })
  expect(titles(back)).toEqual(titles(steps).toReversed())

  const { configs, done, operations } = machines()
  await runSteps(steps, operations, true)
  done.length = 0
  await runSteps(back, operations, false)
  expect(done.slice(0, 2)).toEqual(['apply kubelet w', 'prove kubelet w'])
  for (const component of componentNames) expect(imageIn(configs.get('a')!, component)).toBe(image(component, 'v1.35.4'))
  expect(imageIn(configs.get('b')!, 'kube-scheduler')).toBeUndefined()
  done.length = 0
  await runSteps(back, operations, false)
  expect(done).toEqual([])
  await runSteps(back, operations, true)
  expect(done).toEqual(titles(back).map((title) => `prove ${title}`))
})
