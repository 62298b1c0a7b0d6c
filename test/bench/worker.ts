import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';

/** A script in this directory that runs in a separate process. */
export type Worker<Ask = never, Answer = never> = {
  readonly pid: number;
  /** The port that it listens on, if any. */
  readonly port: number;
  ask(order: Ask): Promise<Answer>;
  stop(): void;
};

type Ready = { readonly ready: true; readonly port: number };
type Answered<Answer> = { readonly answer: Answer } | { readonly error: string };

/** Starts a script and waits until it reports that it is ready. */
export async function startWorker<Ask = never, Answer = never>(
  script: string,
  args: readonly string[] = [],
): Promise<Worker<Ask, Answer>> {
  const child = fork(join(import.meta.dirname, script), args, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const { port } = await nextMessage<Ready>(child, script);
  return {
    pid: child.pid ?? 0,
    port,
    async ask(order) {
      const answered = nextMessage<Answered<Answer>>(child, script);
      child.send(order as object);
      const message = await answered;
      if ('error' in message) throw new Error(`${script}: ${message.error}`);
      return message.answer;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}

function nextMessage<Message>(child: ChildProcess, script: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error(`${script} ended`));
    child.once('exit', onExit);
    child.once('message', (message) => {
      child.off('exit', onExit);
      resolve(message as Message);
    });
  });
}

/** Called in a worker: reports that it is ready. The worker exits when its parent process has exited. */
export function ready(port = 0): void {
  process.once('disconnect', () => process.exit());
  process.send?.({ ready: true, port });
}

/** Called in a worker: reports that it is ready, and carries out commands one after another. */
export function answerAsked<Ask, Answer>(answer: (order: Ask) => Promise<Answer>): void {
  process.on('message', (order) => {
    answer(order as Ask).then(
      (value) => process.send?.({ answer: value }),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  });
  ready();
}
