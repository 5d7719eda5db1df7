/** The image factory as a program of its own, for services that start one by its name. */
import { main as talosctl } from '../../talosctl.ts'

/** `factory serve …` is `talosctl factory serve …`. Returns the exit code. */
export const main = (args: string[]): Promise<number> => talosctl(['factory', ...args])
