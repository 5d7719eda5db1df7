/** Installs the browser where it is missing. */
import { failed } from '../../rootfs/build/failure.ts'
import { prepareHost } from '../../rootfs/build/host.ts'
import { chromium } from './browser.ts'

try {
  await prepareHost([{ name: 'chromium', why: 'reads the documentation site', shown: chromium }])
} catch (error) {
  failed(error)
}
