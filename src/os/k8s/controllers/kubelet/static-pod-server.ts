import { background } from '../../../../cosi/background.ts'
import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { StaticPodList } from '../../kubelet/static-pod-list.ts'
import { StaticPod, StaticPodServerStatus } from '../../resources/static-pod.ts'

/** Serves the list of static pods to the kubelet, on a loopback port that the kernel chooses. */
export function serveStaticPods() {
  const list = new StaticPodList()
  let server: ReturnType<typeof Bun.serve> | undefined
  return defineController({
    name: 'k8s.StaticPodServerController',
    inputs: { pods: weak(StaticPod) },
    outputs: { status: exclusive(StaticPodServerStatus) },
    start({ signal, log }) {
      server = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        idleTimeout: 60,
        async fetch(request, self) {
          if (request.method !== 'GET' || new URL(request.url).pathname !== '/') return new Response('not found\n', { status: 404 })
          const reader = String(self.requestIP(request)?.port)
          return new Response(await list.read(reader, request.signal), { headers: { 'content-type': 'application/json' } })
        },
      })
      signal.addEventListener('abort', () => background(() => server?.stop(true), log, 'stop static pod server failed'))
    },
    reconcile({ pods, status }) {
      list.set(pods.list().map(({ spec }) => spec))
      if (server) status.put('static-pod-server-status', { url: `http://127.0.0.1:${server.port}` })
    },
  })
}
